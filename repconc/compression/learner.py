"""Maps and codebooks for a sample of given vectors: of one size, or of the smallest that keeps enough."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from repconc.codec import Codec
from repconc.compression.given import Sample
from repconc.compression.learning import Mode, Splits
from repconc.config import Settings
from repconc.errors import RepconcError
from repconc.models.heads import make_heads, to_map
from repconc.training.corpus import Corpus
from repconc.training.examples import Examples
from repconc.training.loop import Line, Observer
from repconc.training.pipeline import run_phases
from repconc.training.possible import refuse_impossible
from repconc.training.ranks import Ranks
from repconc.training.recipe import Recipe
from repconc.training.trainer import NORMALIZED_SCALE, Trainer

SIZES = (4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768)
"""Bytes that are tried where a share of the quality is asked for."""


class Plan(Settings):
    """What a run is; a folder that was begun with another plan is refused."""

    mode: Mode
    bytes: int | None
    """None where the size is to be found: all that are tried lie side by side."""
    unit: bool
    lists: int | None
    encoder: str | None
    recipe: Recipe
    document_map: bool
    hidden: int
    vectors_sha256: str
    queries_sha256: str
    labels_sha256: str


@dataclass(frozen=True)
class Learned:
    """Codebooks and maps of one size."""

    coding: Codec  # with the map of documents
    scoring: Codec  # with the map of queries
    history: list[Line]
    quality: float
    """What the held-out dev queries measure."""


class Learner:
    """Trains one size after the other in a folder of its own each."""

    def __init__(self, plan: Plan, examples: Examples, sample: Sample, folder: Path, observe: Observer) -> None:
        self._plan, self._examples, self._sample = plan, examples, sample
        self._folder, self._observe = folder, observe

    def recipe_of(self, bytes: int) -> Recipe:
        """The recipe for a size; refused where it cannot work with what is given."""
        recipe = self._plan.recipe
        if recipe.method == "dense":
            raise RepconcError("A recipe of method dense makes no codes; choose another method.")
        quantizer = recipe.quantizer.model_copy(update={"bytes": bytes})
        recipe = recipe.model_copy(update={"quantizer": quantizer})
        pairs, smallest = len(self._examples.pairs), 4 * quantizer.codewords
        if len(self._examples.pieces) and pairs * (1 + recipe.pieces) < smallest:  # few labels: documents join in
            recipe = recipe.model_copy(update={"pieces": smallest / pairs})
        D, N = self._sample.vectors.shape[1], len(self._sample.ids)
        refuse_impossible(recipe, dimension=D, documents=N, pairs=pairs, ranks=1)
        return recipe

    def of_size(self, bytes: int) -> Learned:
        plan, recipe, D = self._plan, self.recipe_of(bytes), self._sample.vectors.shape[1]
        unit, hidden = self._sample.unit, plan.hidden
        model = make_heads(D, unit=unit, hidden=hidden, document_map=plan.document_map, seed=recipe.seed)
        folder = self._folder / f"bytes-{bytes}"
        folder.mkdir(exist_ok=True)
        trainer = Trainer(model, self._examples, recipe, folder, Ranks(), self._observe)
        run_phases(trainer)
        return Learned(*codecs_of(trainer), trainer.history, next(iter(trainer.measure_codes().values())))

    @property
    def sizes(self) -> list[int]:
        """Bytes that are tried where a size is to be found, the fewest first."""
        D = self._sample.vectors.shape[1]
        return [size for size in SIZES if size <= D] or [D]

    def smallest(self, keep: float, say: Callable[[str], None]) -> Learned:
        """By halving the range of sizes: more bytes are better, or at least not worse."""
        whole, sizes = self._uncompressed(), self.sizes
        if whole <= 0:
            raise RepconcError("The held-out queries find nothing even without compression; give more, or a size.")
        low, high, best = 0, len(sizes), None
        while low < high:
            middle = (low + high) // 2
            learned = self.of_size(sizes[middle])
            say(f"{sizes[middle]} bytes keep {learned.quality / whole:.1%} of the held-out measure.")
            if learned.quality >= keep * whole:
                high, best = middle, learned
            else:
                low = middle + 1
        if best is None:
            raise RepconcError(
                f"No size up to {sizes[-1]} bytes keeps {keep:.0%} of the held-out measure; ask for less, or give "
                "more queries."
            )
        return best

    def _uncompressed(self) -> float:
        model = make_heads(self._sample.vectors.shape[1], unit=self._sample.unit)
        return next(iter(Corpus(model, self._examples, Ranks(), 1 << 30).measure_vectors().values()))


def codecs_of(trainer: Trainer) -> tuple[Codec, Codec]:
    """What documents are coded with and what queries are scored with, each with the map of its side."""
    return (
        replace(trainer.coding, map=to_map(trainer.model, "document")),
        replace(trainer.quantizer.to_codec(), map=to_map(trainer.model, "query")),
    )


def scale_of(sample: Sample, splits: Splits) -> float:
    """Scores times this spread as those of vectors of length 1 do, times 20."""
    if sample.unit:
        return NORMALIZED_SCALE
    lengths = [float(np.linalg.norm(part, axis=1).mean()) for part in (sample.vectors, splits.train.vectors)]
    return NORMALIZED_SCALE / max(lengths[0] * lengths[1], 1e-30)
