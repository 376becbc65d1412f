"""The native part of search, where it was built; see docs/kernel.md.

Where it was not, numpy does the same, to the bit, but slowly.
"""

import os
import warnings
from functools import cache
from importlib import import_module
from typing import Any

from repconc.errors import RepconcError

ROW = 128
"""Rows of bytes, of codewords and centroids, have a multiple of so many where the kernel reads them (kLevelRow)."""


def row_width(dimension: int) -> int:
    """Bytes of such a row; zeros stand behind its dimensions."""
    return -(-dimension // ROW) * ROW


@cache
def kernel() -> Any:
    """The compiled module, or None; says so once. REPCONC_KERNEL=numpy does without it."""
    if os.environ.get("REPCONC_KERNEL") == "numpy":
        return None
    try:
        native = import_module("repconc._kernel")
    except ImportError as error:
        warnings.warn(f"repconc does without its native scan ({error}): searches are slow, and exact.", stacklevel=2)
        return None
    try:
        native.path()
    except RuntimeError as error:
        raise RepconcError(str(error)) from error
    return native
