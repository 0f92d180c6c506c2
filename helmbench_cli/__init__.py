"""The console command: every option is read here, and nowhere further in. No logic.

`app` is the root and says what ends a command with which exit code; `content`, `runs`, `people` and `board` hold the
commands, grouped as users think; `common` has what several share; `aliases` keeps the spellings of the first release.
"""
