"""The base of every error that a user can act on.

HelmbenchError
├── RefusedError          authored input with problems; one line each; nothing was written   exit 1
│   ├── ContentRefusedError, ReviewError, PublishError   (dataset_builder)
│   └── CorpusError                                      (dataset_builder.corpora)
├── FormatError, LineError a file that can't be read: path, line, problem                    exit 2
├── ReleaseError          a dataset folder that is missing, incomplete or edited             exit 2
├── RunError              a run or a file of labels that can't be used                       exit 2
├── EngineError           the judge endpoint can't be used                                   exit 3
├── BudgetError           stopped before the cost cap                                        exit 4
└── …                     one per package if a caller needs to catch it separately
"""

from __future__ import annotations


class HelmbenchError(Exception):
    """An error with a message for the person who can fix it. `exit_code`: the exit code of a command that raises it."""

    exit_code = 2


class RefusedError(HelmbenchError):
    """Problems that the input's author can fix, one per line with file and line; nothing was written. `count`: how many
    there are, if `lines` doesn't show all.
    """

    exit_code = 1

    def __init__(self, *lines: str, count: int = 0) -> None:
        super().__init__("\n".join(lines))
        self.lines, self.count = lines, count or len(lines)
