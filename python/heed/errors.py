"""What heed raises: the kinds of ``heed::Error``, each also the built-in exception that fits it.

Messages are those of the command line: the offending value, and what was expected.
"""


class Error(Exception):
    """Any error of heed; ``code`` is its kind, such as ``"corrupt_data"``."""

    code = "internal"


class InvalidArgument(Error, ValueError):
    """An invalid argument or combination: correct the call."""

    code = "invalid_argument"


class NotFound(Error, LookupError):
    """A file, a name or a token that does not exist."""

    code = "not_found"


class CorruptData(Error, ValueError):
    """Damaged, truncated or inconsistent input."""

    code = "corrupt_data"


class InputOutput(Error, OSError):
    """The operating system failed to read or write."""

    code = "input_output"


class Unsupported(Error, NotImplementedError):
    """Valid, but not supported by heed."""

    code = "unsupported"


class OutOfMemory(Error, MemoryError):
    """More memory than available or allowed."""

    code = "out_of_memory"


class Conflict(Error, RuntimeError):
    """Would overwrite or contradict existing data."""

    code = "conflict"


class Diverged(Error, ArithmeticError):
    """A computation produced a number that is not finite."""

    code = "diverged"


class Interrupted(Error, RuntimeError):
    """Stopped on request; finished work is saved."""

    code = "interrupted"


class InternalError(Error, RuntimeError):
    """A defect in heed itself."""

    code = "internal"


BY_CODE = {
    kind.code: kind
    for kind in (InvalidArgument, NotFound, CorruptData, InputOutput, Unsupported, OutOfMemory,
                 Conflict, Diverged, Interrupted, InternalError)
}
