"""How long the steps of a search take."""

import time


class Stopwatch:
    """Seconds by step; a step that comes several times is added up."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._last = time.perf_counter()

    def lap(self, step: str) -> None:
        """All that happened since the last lap belongs to this step."""
        now = time.perf_counter()
        self.seconds[step] = self.seconds.get(step, 0.0) + now - self._last
        self._last = now
