"""`irds:NAME`: any data set that the ir_datasets package knows, for example irds:beir/scifact or irds:msmarco-passage.

The splits of a name are the registered names below it that have queries and judgements (irds:msmarco-passage gives
'train', 'dev/small', 'trec-dl-2019/judged', ...); a name that is itself a split gives that one under its last part.
"""

from collections.abc import Iterator
from functools import cached_property
from typing import Any

from repconc.data.dataset import Card
from repconc.errors import import_extra
from repconc.lines import InputError, Place, Report
from repconc.records import Document, Judgement, Query


class IrDataset:
    """A reader of one name of ir_datasets."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._package = import_extra("ir_datasets", extra="irds")
        if name not in self._package.registry:
            raise InputError(f"ir_datasets knows no data set {name!r}; its catalogue lists the names.")
        self._corpus = self._package.load(name)
        if not self._corpus.has_docs():
            raise InputError(f"The data set {name!r} of ir_datasets has no documents; choose one that has.")

    @cached_property
    def card(self) -> Card:
        # TREC DL grades passages 0 to 3 and counts 2 and 3 as relevant.
        trec = {split: 2 for split, name in self._names.items() if "msmarco-passage" in name and "trec-dl" in name}
        return Card(name=f"irds:{self.name}", source="ir_datasets", relevance=trec)

    @cached_property
    def _names(self) -> dict[str, str]:
        """Split -> registered name."""
        below = {name.removeprefix(self.name + "/"): name for name in self._package.registry if self._is_below(name)}
        own = {self.name.rsplit("/", 1)[-1]: self.name}
        return {split: name for split, name in (own | below).items() if self._is_split(name)}

    def _is_below(self, name: str) -> bool:
        return str(name).startswith(self.name + "/")

    def _is_split(self, name: str) -> bool:
        part = self._package.load(name)
        return bool(part.has_queries() and part.has_qrels())

    @property
    def splits(self) -> tuple[str, ...]:
        return tuple(self._names)

    def file_of(self, split: str | None) -> str:
        return f"irds:{self.name if split is None else self._names[split]}"

    def documents(self, report: Report) -> Iterator[tuple[Place, Document]]:
        for number, doc in enumerate(self._corpus.docs_iter(), 1):
            title = getattr(doc, "title", "") or ""
            yield Place(f"irds:{self.name}", number), Document(str(doc.doc_id), _text(doc), title)

    def queries(self, split: str, report: Report) -> Iterator[tuple[Place, Query]]:
        for number, query in enumerate(self._package.load(self._names[split]).queries_iter(), 1):
            yield Place(f"irds:{self._names[split]}", number), Query(str(query.query_id), _text(query))

    def judgements(self, split: str, report: Report) -> Iterator[tuple[Place, Judgement]]:
        for number, row in enumerate(self._package.load(self._names[split]).qrels_iter(), 1):
            place = Place(f"irds:{self._names[split]}", number)
            yield place, Judgement(str(row.query_id), str(row.doc_id), int(row.relevance))


def _text(record: Any) -> str:
    """The main text of a document or query, whose field has another name in other collections."""
    for field in ("text", "body", "abstract", "title", "query"):
        if isinstance(value := getattr(record, field, None), str):
            return value
    return str(record.default_text())
