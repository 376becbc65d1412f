"""The index: codes in an inverted file, on disk, searched through memory maps (paper, 3.5 and 3.6.3).

The walk of a query: order the lists by inner product -> read the codes of the best lists -> scan them through one
look-up table -> exact top k -> ids and documents. Results come in the one order of records.py.
"""

from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import numpy as np

from repconc.codec import Codec
from repconc.codec_files import from_bytes
from repconc.errors import RepconcError
from repconc.indexes.bounds import Bounds
from repconc.indexes.checked import MEND, CheckedArray, CheckedFile
from repconc.indexes.filters import Filter, fields_of, parse_filter
from repconc.indexes.lists import Lists
from repconc.indexes.manifest import Segment, read_manifest
from repconc.indexes.queries import in_groups, read_queries, whole_number
from repconc.indexes.ranking import Part, rank
from repconc.indexes.segment import SegmentReader
from repconc.indexes.stopwatch import Stopwatch
from repconc.records import Document, Hit, Hits

OPENINGS = 20
"""How often opening is tried while a writer replaces files."""


class Place(NamedTuple):
    """Where a document lies."""

    segment: SegmentReader
    number: int


class Ask(NamedTuple):
    """What is asked of a search beside its queries."""

    k: int
    probes: int
    tree: Filter | None
    threads: int
    documents: bool
    stopwatch: Stopwatch
    bounds: Bounds
    first: int | None


class Index:
    """An index as it was at the moment of opening; writers do not disturb it."""

    coding: Codec
    scoring: Codec
    centroids: np.ndarray
    lists: Lists
    segments: list[SegmentReader]
    _shared: list[CheckedFile]

    def __init__(self, folder: Path | str, like: "Index | None" = None) -> None:
        """like: an earlier state of it, or of its copy; files that are the same are not opened and verified again."""
        self.folder = Path(folder)
        for attempt in range(OPENINGS):
            self.manifest = read_manifest(self.folder)
            try:
                self._open(like)
                return
            except FileNotFoundError as error:
                # A writer may have committed and cleaned up between the two reads; else the file is really missing.
                if attempt == OPENINGS - 1 or read_manifest(self.folder).version == self.manifest.version:
                    raise RepconcError(f"{error.filename} is missing: {MEND}") from error

    def _open(self, like: "Index | None") -> None:
        opened: dict[str, SegmentReader] = {}
        if like is not None and like.manifest.files == self.manifest.files:
            self.coding, self.scoring, self.centroids = like.coding, like.scoring, like.centroids
            self.lists, self._shared = like.lists, like._shared
            opened = {reader.segment.files["codes"].name: reader for reader in like.segments}
        else:
            self._open_shared()
        self.segments = [self._reader(segment, opened) for segment in self.manifest.segments]

    def _reader(self, segment: Segment, opened: dict[str, SegmentReader]) -> SegmentReader:
        reader = opened.get(segment.files["codes"].name)
        if reader is not None and reader.holds(segment):
            return reader.with_removals(self.folder, segment)
        return SegmentReader(self.folder, segment, self.manifest.bytes, self.manifest.lists, self.coding.gains)

    def _open_shared(self) -> None:
        """What all segments share."""
        manifest = self.manifest
        codec = CheckedFile(self.folder, manifest.files["codec"])
        self.coding, self.scoring = from_bytes(codec.read(0, len(codec)).tobytes(), manifest.dimension, codec.path)
        if self.scoring.codebooks.shape[:2] != (manifest.bytes, manifest.codewords):
            raise RepconcError(f"{codec.path} does not fit the manifest: {MEND}")
        centroids = CheckedArray(self.folder, manifest.files["centroids"], "<f2", self.scoring.width)
        self.centroids = centroids.all().reshape(-1, self.scoring.width)  # [L, D]
        self.lists = Lists(self.centroids)
        self._shared = [codec, centroids.file]

    def __len__(self) -> int:
        return self.manifest.documents

    @property
    def nbytes(self) -> int:
        """What search needs in memory: codes, lists, codebooks, removal bits; without ids and texts.

        Centroids are there twice, with one byte a dimension, which is read first; so are the codebooks that score,
        where tables are made from a form of their own.
        """
        on_disk = sum(self.sizes()[part] for part in ("codes", "lists", "codebooks", "removed"))
        return on_disk + self.lists.copied + self.scoring.copied

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
        filter: str | Filter | None = None,
        documents: bool = False,
        stopwatch: Stopwatch | None = None,
        bounds: Bounds | None = None,
        first: int | None = None,
    ) -> list[Hits]:
        """The k best documents of each query. queries: [B, D] or [D], as the model's query encoder gives them.

        probes: lists to read, default as tuned; more are read where they hold fewer than k documents that pass.
        filter: a text, or what `read_filter` made of it. documents: with title, text and metadata. stopwatch: for the
        steps probe, scan and documents. bounds: when to give up. first: bytes of each code that are scanned, default
        all; the thousand best documents of each segment by these (ten times k, where that is more) are then scored
        with all bytes.
        """
        watch = Stopwatch() if stopwatch is None else stopwatch
        vectors = read_queries(queries, self.manifest.dimension)
        k = min(whole_number("k", k), max(1, len(self)))
        chosen = min(whole_number("probes", self.manifest.probes if probes is None else probes), self.manifest.lists)
        tree = self.read_filter(filter) if isinstance(filter, str) else filter
        workers = 1 if threads is None else whole_number("threads", threads)
        ask = Ask(k, chosen, tree, workers, documents, watch, bounds or Bounds(), first)
        return [hits for group in in_groups(vectors, self.scoring) for hits in self._search(group, ask)]

    def __contains__(self, id: str) -> bool:
        return self.find(id) is not None

    def get(self, id: str, bounds: Bounds | None = None) -> Document | None:
        """A document by its id; None where there is none."""
        place = self.find(id)
        return None if place is None else place.segment.documents.get(place.number, bounds)

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

    def _search(self, queries: np.ndarray, ask: Ask) -> list[Hits]:
        """queries: [B, width], transformed."""
        tables = self.scoring.tables_of(queries)
        found: list[list[Part]] = [[] for _ in queries]
        waiting, read = np.arange(len(queries)), 0
        while len(waiting) and read < self.manifest.lists:
            ask.bounds.go_on()
            wanted = min(max(ask.probes, 4 * read), self.manifest.lists)
            rows = slice(None) if len(waiting) == len(queries) else waiting
            lists = self.lists.best(queries[rows], wanted)[:, read:]
            read = wanted
            ask.stopwatch.lap("probe")
            for segment in self.segments:
                parts = segment.search(tables[rows], lists, ask.k, ask.tree, ask.threads, ask.bounds, ask.first)
                for query, (positions, scores) in zip(waiting.tolist(), parts, strict=True):
                    if len(positions):
                        found[query].append(Part(segment, positions, scores))
            waiting = np.array([n for n in waiting.tolist() if sum(len(part.scores) for part in found[n]) < ask.k], int)
            ask.stopwatch.lap("scan")
        ranked = rank(found, ask.k)
        ask.stopwatch.lap("scan")
        if not ask.documents:
            return [[Hit(id, score) for score, id, _, _ in best] for best in ranked]
        hits = [
            [Hit(id, score, parts[place].segment.documents.get(row, ask.bounds)) for score, id, place, row in best]
            for parts, best in zip(found, ranked, strict=True)
        ]
        ask.stopwatch.lap("documents")
        return hits

    def read_filter(self, text: str) -> Filter:
        """A filter over the fields that the documents have."""
        tree = parse_filter(text)
        if unknown := fields_of(tree) - self.fields:
            known = ", ".join(sorted(self.fields)) or "none"
            raise RepconcError(f"No document has the field {sorted(unknown)[0]!r}; the fields are: {known}.")
        return tree
