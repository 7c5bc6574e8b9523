"""What a person's own function raised, and in which line of theirs: for errors that are kept as words."""

from __future__ import annotations

import traceback
from pathlib import Path


def raised_at(error: BaseException, file: str) -> str:
    """`KeyError: 'x' (conftest.py:12)`: the error, and the last line of that file on its way.

    Args:
        error: with its traceback.
        file: path of the file that declares the function.
    """
    lines = [one.lineno for one in traceback.extract_tb(error.__traceback__) if one.filename == file]
    where = f" ({Path(file).name}:{lines[-1]})" if lines else f" ({Path(file).name})"
    return f"{type(error).__name__}: {error}{where}"
