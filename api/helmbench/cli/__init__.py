"""The console command: every option is read here, and nowhere further in. No logic.

- `root`: what commands hang from, and the exit codes; `app`: runs one; `failures`: which error ends it with which code;
  `endings`: how one ends that did nothing.
- `content`, `runs`, `people`, `board`: the commands, grouped as users think.
- `common`, `asking`: the options that several share.
- `aliases`: the spellings of the first release.
"""
