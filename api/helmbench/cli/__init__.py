"""The `helmbench` command: options are read here and nowhere further in; the work is done by the other packages.

- `app`: runs one command and returns its exit code; `common`: the root command, exit codes, output and errors.
- `options`: the options that several commands share.
- `content`, `runs`, `people`, `board`: the commands, in the order of `helmbench --help`.
"""
