"""`hf:NAME`: retrieval sets on the Hugging Face hub, or in a local folder of the same form.

Two layouts are in use. MTEB's has configurations 'corpus', 'queries' and 'default' or 'qrels' (judgements by split);
BEIR's has 'corpus' and 'queries', and the judgements in a second repository, NAME-qrels.
"""

from collections.abc import Callable, Iterator
from functools import cached_property
from itertools import chain
from typing import Any

from repconc.data.beir import grade
from repconc.data.dataset import Card
from repconc.errors import first_line, import_extra
from repconc.lines import InputError, Place, Problem, Report
from repconc.records import Document, Judgement, Query


class HuggingFaceDataset:
    """A reader of one name of the `datasets` package."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._package = import_extra("datasets", extra="hf")
        self._configurations = self._open(self._package.get_dataset_config_names, name)
        if not {"corpus", "queries"} <= set(self._configurations):
            found = ", ".join(self._configurations)
            raise InputError(f"hf:{name} is not a retrieval set: it needs 'corpus' and 'queries' and has {found}.")

    def _open(self, function: Callable[..., Any], *arguments: str) -> Any:
        try:
            return function(*arguments)
        except Exception as error:  # the package raises many kinds; all mean that the set cannot be had
            raise InputError(f"The data set hf:{self.name} cannot be opened: {first_line(error)}") from error

    @property
    def card(self) -> Card:
        return Card(name=f"hf:{self.name}", source="Hugging Face datasets")

    @cached_property
    def _judgements(self) -> dict[str, Any]:
        """Split -> table of judgements."""
        own = [name for name in ("default", "qrels") if name in self._configurations]
        location = (self.name, own[0]) if own else (f"{self.name}-qrels",)
        tables = self._open(self._package.load_dataset, *location)
        return {"dev" if split == "validation" else split: table for split, table in tables.items()}

    @property
    def splits(self) -> tuple[str, ...]:
        return tuple(self._judgements)

    def file_of(self, split: str | None) -> str:
        return f"hf:{self.name}/{'corpus' if split is None else split}"

    def _texts(self, configuration: str, report: Report) -> Iterator[tuple[Place, str, dict[str, Any]]]:
        """Id and row of each line of a table that has a text, from a memory-mapped file."""
        tables = self._open(self._package.load_dataset, self.name, configuration).values()
        for number, row in enumerate(chain.from_iterable(tables), 1):
            place = Place(f"hf:{self.name}/{configuration}", number)
            id = row.get("_id", row.get("id"))
            if id is None or id == "" or not isinstance(row.get("text"), str):
                report(Problem(place, "the row has no '_id' or no 'text'."))
            else:
                yield place, str(id), row

    def documents(self, report: Report) -> Iterator[tuple[Place, Document]]:
        for place, id, row in self._texts("corpus", report):
            yield place, Document(id, row["text"], row.get("title") or "")

    def queries(self, split: str, report: Report) -> Iterator[tuple[Place, Query]]:
        for place, id, row in self._texts("queries", report):
            yield place, Query(id, row["text"])

    def judgements(self, split: str, report: Report) -> Iterator[tuple[Place, Judgement]]:
        for number, row in enumerate(self._judgements[split], 1):
            place = Place(self.file_of(split), number)
            query, document, relevance = row.get("query-id"), row.get("corpus-id"), grade(str(row.get("score")))
            if query is None or document is None or relevance is None:
                report(
                    Problem(place, "the row has no 'query-id', no 'corpus-id' or no 'score' that is a whole number.")
                )
            else:
                yield place, Judgement(str(query), str(document), relevance)
