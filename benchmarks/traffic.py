"""Mixed traffic: searches, upserts and removals, with a memory of what was acknowledged.

A document is touched by one request at a time, so that what was acknowledged last is what must be there afterwards.
"""

import json
import random
import shutil
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import quote

from benchmarks.load import LOST, Pool, request
from repconc import Document, Index, Searcher, add_documents
from repconc.files import locked
from repconc.indexes.manifest import MANIFEST
from repconc.indexes.writing import remove

WRITES = 0.02
"""The share of requests that write."""
REMOVALS = 0.25
"""The share of writes that remove, where there is something to remove."""
COMPARED = 100
K = 10


class Traffic:
    """Chooses requests and remembers."""

    def __init__(self, questions: Sequence[str], known: Sequence[str], token: str, seed: int = 0) -> None:
        """known: ids of documents that are there, some of which will be replaced or removed."""
        self._chance, self._token = random.Random(seed), token
        self._questions = questions
        self._searches = [request("POST", "/v1/search", json.dumps({"query": q, "k": K}).encode()) for q in questions]
        self._ids = [*known, *(f"new-{number}" for number in range(len(known)))]
        self._busy: set[str] = set()
        self.state: dict[str, str | None] = {}
        """The text of each document that was written, None where it was removed."""
        self.open: dict[str, str | None] = {}
        """Writes whose connection broke: they may have happened."""
        self.acknowledged = 0

    async def search(self, pool: Pool) -> int:
        status, _ = await pool.ask(self._chance.choice(self._searches))
        return status

    async def mixed(self, pool: Pool) -> int:
        if self._chance.random() >= WRITES:
            return await self.search(pool)
        return await self.write(pool)

    async def write(self, pool: Pool) -> int:
        id = self._chance.choice(self._ids)
        while id in self._busy or id in self.open:
            id = self._chance.choice(self._ids)
        text = self._next(id)
        self._busy.add(id)
        status, _ = await pool.ask(self._request(id, text))
        self._busy.discard(id)
        if status == 200:
            self.state[id] = text
            self.acknowledged += 1
        elif status == LOST:
            self.open[id] = text
        return status

    def _next(self, id: str) -> str | None:
        there = self.state.get(id, None if id.startswith("new-") else "")
        if there is not None and self._chance.random() < REMOVALS:
            return None
        return f"{self._chance.choice(self._questions)} {self._chance.randrange(10**9)}"

    def _request(self, id: str, text: str | None) -> bytes:
        if text is None:
            return request("DELETE", f"/v1/documents/{quote(id, safe='')}", token=self._token)
        body = json.dumps({"documents": [{"id": id, "text": text}]}).encode()
        return request("POST", "/v1/documents", body, self._token)

    def settle(self, folder: Path, before: Index) -> int:
        """After a kill, which open writes happened; gives how many documents are in no state that they may be in."""
        with locked(folder / MANIFEST):  # an orphaned commit may be under way
            index, wrong = Index(folder), 0
        for id, text in self.open.items():
            old, now = before.get(id), index.get(id)
            earlier = self.state.get(id, old.text if old else None)
            found = None if now is None else now.text
            wrong += found not in {text, earlier}
            if found != earlier:
                self.state[id] = found
        self.open = {}
        return wrong

    def differences(self, folder: Path, original: Path, scratch: Path, searcher: Searcher) -> int:
        """How much the index differs from the original one after a replay of what was acknowledged."""
        shutil.copytree(original, scratch)
        there = Index(scratch)
        written = [Document(id, text) for id, text in self.state.items() if text is not None]
        add_documents(scratch, written, replace=True, encoder=searcher.encoder)
        remove(scratch, [id for id, text in self.state.items() if text is None and id in there])
        ours, replayed = Index(folder), Index(scratch)
        ours.verify()
        different: int = sum(ours.get(id) != replayed.get(id) for id in self.state)
        vectors = searcher.encoder.embed_queries(list(self._questions[:COMPARED]))
        found = [index.search(vectors, 100, probes=index.manifest.lists) for index in (ours, replayed)]
        different += sum(one != other for one, other in zip(*found, strict=True))
        shutil.rmtree(scratch)
        return different + abs(len(ours) - len(replayed))
