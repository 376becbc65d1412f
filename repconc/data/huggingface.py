"""`hf:NAME`: retrieval sets on the Hugging Face hub, or in a local folder of the same form.

Two layouts are in use. MTEB's has configurations 'corpus', 'queries' and 'default' or 'qrels' (judgements by split);
BEIR's has 'corpus' and 'queries', and the judgements in a second repository, NAME-qrels.
"""

from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Any

from repconc.data.dataset import Card
from repconc.errors import import_extra
from repconc.lines import InputError, Place, Problem, Report
from repconc.records import Document, Judgement, Query


class HuggingFaceDataset:
    """A reader of one name of the `datasets` package."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._package = import_extra("datasets", extra="hf")
        try:
            self._configurations = self._package.get_dataset_config_names(name)
        except Exception as error:  # the package raises many kinds; all mean that the set cannot be had
            raise InputError(f"The data set hf:{name} cannot be opened: {str(error).splitlines()[0]}") from error
        if not {"corpus", "queries"} <= set(self._configurations):
            found = ", ".join(self._configurations)
            raise InputError(f"hf:{name} is not a retrieval set: it needs 'corpus' and 'queries' and has {found}.")

    @property
    def card(self) -> Card:
        return Card(name=f"hf:{self.name}", source="Hugging Face datasets")

    @cached_property
    def _judgements(self) -> Mapping[str, Any]:
        """Split -> table of judgements."""
        for configuration in ("default", "qrels"):
            if configuration in self._configurations:
                return dict(self._package.load_dataset(self.name, configuration))
        return dict(self._package.load_dataset(f"{self.name}-qrels"))

    @property
    def splits(self) -> tuple[str, ...]:
        names = {"validation": "dev"}
        return tuple(names.get(split, split) for split in self._judgements)

    def _rows(self, configuration: str) -> Iterator[tuple[Place, dict[str, Any]]]:
        """The rows of a table, from a memory-mapped file."""
        (table,) = self._package.load_dataset(self.name, configuration).values()
        for number, row in enumerate(table, 1):
            yield Place(f"hf:{self.name}/{configuration}", number), row

    def documents(self, report: Report) -> Iterator[tuple[Place, Document]]:
        for place, row in self._rows("corpus"):
            if (id := _id(row)) is None or not isinstance(row.get("text"), str):
                report(Problem(place, "the row has no '_id' or no 'text'."))
            else:
                yield place, Document(id, row["text"], row.get("title") or "")

    def queries(self, split: str, report: Report) -> Iterator[tuple[Place, Query]]:
        for place, row in self._rows("queries"):
            if (id := _id(row)) is None or not isinstance(row.get("text"), str):
                report(Problem(place, "the row has no '_id' or no 'text'."))
            else:
                yield place, Query(id, row["text"])

    def judgements(self, split: str, report: Report) -> Iterator[tuple[Place, Judgement]]:
        table = self._judgements.get(split) or self._judgements["validation"]
        for number, row in enumerate(table, 1):
            place = Place(f"hf:{self.name}/{split}", number)
            yield place, Judgement(str(row["query-id"]), str(row["corpus-id"]), int(row["score"]))


def _id(row: dict[str, Any]) -> str | None:
    id = row.get("_id", row.get("id"))
    return None if id is None or id == "" else str(id)
