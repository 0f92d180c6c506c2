"""The `helmbench` command. Only this package reads options; the other packages do the work.

- `app`: runs one command and returns its exit code; `common`: the root command, exit codes, output and errors.
- `options`: the options that several commands share.
- `content`, `runs`, `people`, `board`: the commands, in the order of `helmbench --help`.
"""
