"""What can go wrong on the way to a verdict, said in one line each to the person who can mend it."""


class RunError(Exception):
    """A run that can't be judged; the message names the file, the row or line, and what was expected."""


class EngineError(Exception):
    """The judge's endpoint can't be used at all (refused, unknown model, no key); the message says which."""
