"""The index: codes in an inverted file, on disk, searched through memory maps (paper, 3.5 and 3.6.3).

The walk of a query: order the lists by inner product -> read the codes of the best lists -> scan them through one
look-up table -> exact top k -> ids and documents. Results come in the one order of records.py.
"""

from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import numpy as np

from repconc.codec import from_bytes
from repconc.errors import RepconcError
from repconc.indexes.checked import MEND, CheckedArray, CheckedFile
from repconc.indexes.filters import Filter, fields_of, parse_filter
from repconc.indexes.lists import best_lists, list_scores
from repconc.indexes.manifest import read_manifest
from repconc.indexes.segment import SegmentReader
from repconc.indexes.top import best_places
from repconc.records import Document, Hit, Hits, in_order

OPENINGS = 20
"""How often opening is tried while a writer replaces files."""


class Place(NamedTuple):
    """Where a document lies."""

    segment: SegmentReader
    number: int


class Index:
    """An index as it was at the moment of opening; writers do not disturb it."""

    def __init__(self, folder: Path | str) -> None:
        self.folder = Path(folder)
        for attempt in range(OPENINGS):
            self.manifest = read_manifest(self.folder)
            try:
                self._open()
                return
            except FileNotFoundError as error:
                # A writer may have committed and cleaned up between the two reads; else the file is really missing.
                if attempt == OPENINGS - 1 or read_manifest(self.folder).version == self.manifest.version:
                    raise RepconcError(f"{error.filename} is missing: {MEND}") from error

    def _open(self) -> None:
        manifest = self.manifest
        self._codec_file = CheckedFile(self.folder, manifest.files["codec"])
        content = self._codec_file.read(0, len(self._codec_file)).tobytes()
        self.coding, self.scoring = from_bytes(content, manifest.dimension, self._codec_file.path)
        if self.scoring.codebooks.shape[:2] != (manifest.bytes, manifest.codewords):
            raise RepconcError(f"{self._codec_file.path} does not fit the manifest: {MEND}")
        width = self.scoring.codebooks.shape[0] * self.scoring.codebooks.shape[2]
        centroids = CheckedArray(self.folder, manifest.files["centroids"], "<f2", width)
        self.centroids = centroids.all()  # [L, D]
        self._shared = [self._codec_file, centroids.file]
        self.segments = [
            SegmentReader(self.folder, segment, manifest.bytes, manifest.lists) for segment in manifest.segments
        ]

    def __len__(self) -> int:
        return self.manifest.documents

    @property
    def nbytes(self) -> int:
        """What search needs in memory: codes, lists, codebooks, removal bits; without ids and texts."""
        return sum(self.sizes()[part] for part in ("codes", "lists", "codebooks", "removed"))

    def sizes(self) -> dict[str, int]:
        """Bytes by part, on disk."""
        shared = self.manifest.files
        files = [segment.files for segment in self.manifest.segments]

        def total(*kinds: str) -> int:
            return sum(part[kind].bytes for part in files for kind in kinds if kind in part)

        return {
            "codes": total("codes"),
            "lists": shared["centroids"].bytes + total("offsets"),
            "codebooks": shared["codec"].bytes,
            "removed": total("removed"),
            "ids": total("ids", "ends", "hashes", "owners", "numbers"),
            "documents": total("documents", "fields"),
        }

    def search(
        self,
        queries: np.ndarray,
        k: int = 10,
        threads: int | None = None,
        *,
        probes: int | None = None,
        filter: str | None = None,
        documents: bool = False,
    ) -> list[Hits]:
        """The k best documents of each query. queries: [B, D] or [D], as the model's query encoder gives them.

        probes: lists to read, default as tuned; more are read where they hold fewer than k documents that pass.
        documents: with title, text and metadata.
        """
        vectors = self._checked(queries)
        if k < 1:
            raise RepconcError(f"k is {k}; at least one result must be asked for.")
        if probes is not None and probes < 1:
            raise RepconcError(f"probes is {probes}; at least one list must be read.")
        tree = None if filter is None else self._parsed(filter)
        chosen = min(probes or self.manifest.probes, self.manifest.lists)

        # One at a time: a rotated batch rounds differently, and a query must find the same alone and in a batch.
        M, _, d = self.scoring.codebooks.shape
        blocks = np.empty((len(vectors), M, d), np.float32)
        for block, vector in zip(blocks, vectors, strict=True):
            block[:] = self.scoring.transform(vector)[0]
        scores = list_scores(self.centroids, blocks.reshape(len(vectors), -1))

        def one(query: np.ndarray, lists: np.ndarray) -> Hits:
            found = self._search(query, lists, k, chosen, tree)
            if not documents:
                return list(found)
            return [hit._replace(document=place.segment.documents.get(place.number)) for hit, place in found.items()]

        if not threads or threads == 1 or len(vectors) == 1:
            return list(map(one, blocks, scores))
        with ThreadPoolExecutor(threads) as pool:
            return list(pool.map(one, blocks, scores))

    def __contains__(self, id: str) -> bool:
        return self.find(id) is not None

    def get(self, id: str) -> Document | None:
        """A document by its id; None where there is none."""
        place = self.find(id)
        return None if place is None else place.segment.documents.get(place.number)

    def find(self, id: str) -> Place | None:
        """Where a document lies that is not removed."""
        for segment in self.segments:
            number = segment.documents.number_of(id)
            if number is not None and not segment.is_removed(number):
                return Place(segment, number)
        return None

    def files(self) -> list[CheckedFile]:
        """All files that hold it."""
        return [*self._shared, *(file for segment in self.segments for file in segment.files())]

    def verify(self) -> None:
        """Compare every block of every file with its checksum."""
        for file in self.files():
            file.verify()

    @cached_property
    def fields(self) -> set[str]:
        """The metadata fields that filters can name."""
        return {name for segment in self.segments for name in segment.documents.columns}

    def _search(
        self, query: np.ndarray, list_scores: np.ndarray, k: int, probes: int, tree: Filter | None
    ) -> dict[Hit, Place]:
        """The best k, where they lie; of more lists than `probes`, where these hold fewer than k that pass.

        query: [M, d], transformed; list_scores: [L].
        """
        tables = self.scoring.tables_of(query)
        if not np.isfinite(tables).all():
            raise RepconcError("A query vector holds values too large to multiply.")
        owners, positions, scores = (np.empty(0, kind) for kind in (np.int64, np.int64, np.float32))
        read = 0
        while read < self.manifest.lists and (read < probes or len(scores) < k):
            wanted = min(max(probes, 4 * read), self.manifest.lists)
            lists = best_lists(list_scores, wanted)[read:]
            read = wanted
            for number, segment in enumerate(self.segments):
                places, values = segment.search(tables, lists, k, tree)
                owners = np.concatenate([owners, np.full(len(places), number)])
                positions, scores = np.concatenate([positions, places]), np.concatenate([scores, values])
        kept, scores = best_places(np.arange(len(scores)), scores, k)
        where = {}
        for number, segment in enumerate(self.segments):
            own = owners[kept] == number
            numbers = segment.numbers.take(positions[kept][own])
            found = zip(segment.documents.ids_of(numbers), numbers.tolist(), scores[own].tolist(), strict=True)
            where.update({Hit(id, value): Place(segment, document) for id, document, value in found})
        return {hit: where[hit] for hit in in_order(where)[:k]}

    def _checked(self, queries: np.ndarray) -> np.ndarray:
        vectors = np.atleast_2d(np.asarray(queries, dtype=np.float32))
        if vectors.ndim != 2 or vectors.shape[1] != self.manifest.dimension:
            raise RepconcError(
                f"The queries have {vectors.shape[-1]} dimensions and the index {self.manifest.dimension}: "
                "they must come from the index's own model."
            )
        if not np.isfinite(vectors).all():
            raise RepconcError("A query vector holds NaN or an infinite value.")
        return vectors

    def _parsed(self, text: str) -> Filter:
        tree = parse_filter(text)
        if unknown := fields_of(tree) - self.fields:
            known = ", ".join(sorted(self.fields)) or "none"
            raise RepconcError(f"No document has the field {sorted(unknown)[0]!r}; the fields are: {known}.")
        return tree
