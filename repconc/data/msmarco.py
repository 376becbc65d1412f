"""MS MARCO folders as they are downloaded: passages (collection.tsv) or documents (msmarco-docs.tsv), plain or .gz.

A split is found by its files: queries.dev.tsv with qrels.dev.tsv, msmarco-doctrain-queries.tsv with
msmarco-doctrain-qrels.tsv, msmarco-test2019-queries.tsv with 2019qrels-pass.txt or 2019qrels-docs.txt, and so on.
"""

import re
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path

from repconc.data.beir import read_trec_judgements
from repconc.data.dataset import Card
from repconc.lines import Place, Problem, Report, is_id, plain_or_gzipped, read_lines
from repconc.records import Document, Judgement, Query

_QUERIES = (
    re.compile(r"queries\.(?P<split>[\w.-]+?)\.tsv"),
    re.compile(r"msmarco-doc(?P<split>\w+)-queries\.tsv"),
    re.compile(r"msmarco-test(?P<year>\d{4})-queries\.tsv"),
)
_QRELS = (
    re.compile(r"qrels\.(?P<split>[\w.-]+?)\.(?:tsv|txt)"),
    re.compile(r"msmarco-doc(?P<split>\w+)-qrels\.tsv"),
    re.compile(r"(?P<year>\d{4})qrels-(?:pass|docs)\.txt"),
)


class MsMarcoFolder:
    """A reader of one MS MARCO folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @staticmethod
    def recognises(folder: Path) -> bool:
        return any(plain_or_gzipped(folder / name).exists() for name in ("collection.tsv", "msmarco-docs.tsv"))

    @property
    def is_passages(self) -> bool:
        return plain_or_gzipped(self.folder / "collection.tsv").exists()

    @cached_property
    def card(self) -> Card:
        # TREC DL grades passages 0 to 3 and counts 2 and 3 as relevant; MS MARCO's own labels are binary.
        trec = {split: 2 for split in self.splits if split.startswith("dl") and self.is_passages}
        return Card(name=self.folder.resolve().name, title="MS MARCO", source=str(self.folder), relevance=trec)

    @cached_property
    def splits(self) -> tuple[str, ...]:
        return tuple(sorted(self._files(_QRELS)))

    def _files(self, patterns: tuple[re.Pattern[str], ...]) -> dict[str, Path]:
        """Split -> file. TREC's test sets are called dl2019, dl2020, ..."""
        found: dict[str, Path] = {}
        for path in sorted(self.folder.iterdir()):
            for pattern in patterns:
                if match := pattern.fullmatch(path.name.removesuffix(".gz")):
                    parts = match.groupdict()
                    found.setdefault(parts.get("split") or f"dl{parts['year']}", path)
        return found

    def file_of(self, split: str | None) -> str:
        if split is not None:
            return str(self._files(_QRELS)[split])
        return str(plain_or_gzipped(self.folder / ("collection.tsv" if self.is_passages else "msmarco-docs.tsv")))

    def documents(self, report: Report) -> Iterator[tuple[Place, Document]]:
        for place, parts in _read_fields(Path(self.file_of(None)), 2 if self.is_passages else 4, report):
            if self.is_passages:
                yield place, Document(parts[0], parts[1])
            else:
                yield place, Document(parts[0], parts[3], title=parts[2], metadata={"url": parts[1]})

    def queries(self, split: str, report: Report) -> Iterator[tuple[Place, Query]]:
        files = self._files(_QUERIES)
        if split not in files:
            report(Problem(Place(str(self.folder), 0), f"the file with the queries of split {split!r} is missing."))
            return
        for place, parts in _read_fields(files[split], 2, report):
            yield place, Query(parts[0], parts[1])

    def judgements(self, split: str, report: Report) -> Iterator[tuple[Place, Judgement]]:
        return read_trec_judgements(Path(self.file_of(split)), report)


def _read_fields(path: Path, count: int, report: Report) -> Iterator[tuple[Place, list[str]]]:
    for place, line in read_lines(path, report):
        parts = line.split("\t")
        if len(parts) != count:
            report(Problem(place, f"the line has {len(parts)} tab-separated fields instead of {count}."))
        elif not is_id(parts[0]):
            report(Problem(place, "the id, the first field of the line, is empty or not printable."))
        else:
            yield place, parts
