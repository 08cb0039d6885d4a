"""Files that are whole or not there."""

import contextlib
import os
import tempfile
from typing import IO, Any, Iterator


@contextlib.contextmanager
def replaced(path, mode: str = "wb", **options: Any) -> Iterator[IO[Any]]:
    """A file to write to, beside ``path``: it takes its place at the end, and is removed where the
    writing fails."""
    path = os.fspath(path)
    folder, name = os.path.split(path)
    handle, beside = tempfile.mkstemp(prefix=name + ".", dir=folder or ".")
    try:
        with os.fdopen(handle, mode, **options) as file:
            yield file
        os.replace(beside, path)
    except BaseException:
        os.unlink(beside)
        raise
