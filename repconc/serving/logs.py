"""Lines of the log that a request may cause: bounded, on one line, and without anything that came with the request."""

import logging
import time
import traceback

from repconc.errors import RepconcError, first_line

log = logging.getLogger("repconc.serving")

SELDOM_SECONDS = 60.0
DEEPEST = 8
"""Places of the code that a line names, from the innermost on."""


class Seldom:
    """A line that strangers can cause as often as they like: at most once a minute, with how often it was."""

    def __init__(self, sentence: str) -> None:
        self._sentence, self._count, self._next = sentence, 0, 0.0

    def tell(self) -> None:
        self._count += 1
        if time.monotonic() >= self._next:
            log.warning("%s (%d times)", self._sentence, self._count)
            self._count, self._next = 0, time.monotonic() + SELDOM_SECONDS


def tell_failure(what: str, error: Exception) -> None:
    """What happened and where in the code. Of others' errors only the kind: their words may quote a request."""
    places = traceback.extract_tb(error.__traceback__)
    trail = " < ".join(f"{place.filename}:{place.lineno} {place.name}" for place in reversed(places[-DEEPEST:]))
    words = repr(first_line(error)) if isinstance(error, RepconcError | OSError) else type(error).__name__
    log.error("%s: %s at %s", what, words, trail)
