"""The native part of search, where it was built; see docs/kernel.md.

Where it was not, numpy does the same, to the bit, but slowly.
"""

import warnings
from functools import cache
from importlib import import_module
from typing import Any


@cache
def kernel() -> Any:
    """The compiled module, or None; says so once."""
    try:
        return import_module("repconc._kernel")
    except ImportError:
        warnings.warn("repconc was installed without its native scan: searches are slow, and exact.", stacklevel=2)
        return None
