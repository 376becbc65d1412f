"""A lock that is given in the order in which it was asked for."""

import threading
from collections import deque


class Turns:
    """Who comes back for more stands at the end; with Python's own locks the same thread may win again and again."""

    def __init__(self) -> None:
        self._guard, self._taken = threading.Lock(), False
        self._waiting: deque[threading.Lock] = deque()

    def __enter__(self) -> None:
        with self._guard:
            if not self._taken:
                self._taken = True
                return
            mine = threading.Lock()
            mine.acquire()
            self._waiting.append(mine)
        mine.acquire()  # whoever leaves lets us in

    def __exit__(self, *_: object) -> None:
        with self._guard:
            if self._waiting:
                self._waiting.popleft().release()
            else:
                self._taken = False
