"""The errors a user may see. Each is one sentence that says what is wrong and what to do about it."""

from importlib import import_module
from typing import Any


class RepconcError(Exception):
    """Something the user can mend; the command line prints it as one sentence, without a traceback."""


class CheckError(RepconcError):
    """A check that the user asked for did not hold (exit code 3 on the command line)."""


class DocumentError(RepconcError):
    """A document that cannot be kept as it is; others can."""


class BusyError(RepconcError):
    """Another process is at work on the same thing; later it may go."""


class DamagedError(RepconcError):
    """A part of an index is not what was written there; others may be."""


class ReplacedError(RepconcError):
    """What was opened is no longer what lies there."""


def first_line(error: BaseException) -> str:
    """What another library says went wrong, short enough for a sentence of ours."""
    return str(error).splitlines()[0] if str(error) else type(error).__name__


def import_extra(module: str, extra: str) -> Any:
    """Import an optional dependency, or name the extra that brings it."""
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        if error.name != module.split(".")[0]:
            raise
        raise RepconcError(
            f"This needs the package {module.split('.')[0]!r}, which is not installed: pip install 'repconc[{extra}]'."
        ) from error
