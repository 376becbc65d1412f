"""The phases of training, each resumable by itself: dense, warm-up, mining, stage 1, coding, stage 2.

A phase that is finished has left a file in the folder; run again, it reads the file instead of working. So a run that
was killed anywhere goes through the same phases in the same order, quickly up to the place where it was, and on.
"""

import copy
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import numpy as np
import torch
from safetensors.numpy import load_file, save

from repconc.additive import make_codec
from repconc.codec import Codec
from repconc.files import atomic_write
from repconc.models.dual import SIDES, DualEncoder
from repconc.models.encoder import Side
from repconc.quantization.quantizer import Constraint, Quantizer
from repconc.quantization.structures import quantizer_of, warm_up
from repconc.training.corpus import Corpus
from repconc.training.dense import dense_loss
from repconc.training.examples import Batches, Examples
from repconc.training.loop import Line, Observer, State, Task, as_progress, fit
from repconc.training.negatives import FixedCodes, FixedDocuments, FixedVectors, Passing, Searchable, top_irrelevant
from repconc.training.ranks import Ranks
from repconc.training.recipe import DensePhase, Phase, Recipe, StageOne, StageTwo, Taught, paper_loss, paper_weight
from repconc.training.stage_one import StageOneLoss
from repconc.training.stage_two import search_and_rank
from repconc.training.statistics import twins_of, use_of
from repconc.training.step import LossOf, contrast, own_part
from repconc.training.teaching import Teacher

NORMALIZED_SCALE = 20.0


class Trainer:
    """A model on its way through the phases."""

    quantizer: Quantizer
    codes: np.ndarray  # [N, M] of all documents, fixed from coding on
    coding: Codec  # what they were coded with
    teacher: Teacher  # the encoders before compression
    save_every = 120.0  # seconds between two checkpoints

    def __init__(
        self,
        model: DualEncoder,
        examples: Examples,
        recipe: Recipe,
        folder: Path,
        ranks: Ranks | None = None,
        observe: Observer = lambda line: None,
    ) -> None:
        self.model, self.examples, self.recipe, self.folder = model, examples, recipe, folder
        self.ranks, self.observe = ranks or Ranks(), observe
        self.scale = recipe.scale or (NORMALIZED_SCALE if model.is_normalized else 1.0)
        self.history: list[Line] = []
        # Chunks save the memory of a transformer's activations; a head or a static encoder has next to none.
        self.chunk = recipe.chunk if model.has_layers else 1 << 30
        self.corpus = Corpus(model, examples, self.ranks, self.chunk)

    # Phases, in the order in which they come

    def dense(self, phase: DensePhase, name: str) -> State:
        """Train the encoders without a quantizer."""
        if phase.negatives == "dynamic":
            self.model.separate_queries()
            documents = FixedVectors(partial(self.corpus.vectors, self.corpus.everything))
            return self._search_fixed(phase, name, documents, by_lambda=False)
        loss = dense_loss(self.scale)
        return self._contrast(phase, name, loss, self.corpus.measure_vectors, negatives=phase.negatives)

    def warm_up(self, rotate: bool = True) -> float:
        """Codebooks from a sample of the document vectors; a rotation becomes a part of the text model.

        Gives the seconds that it took, also when they were spent in an earlier run.
        """
        quantizer, path = self.recipe.quantizer, self.folder / "warmup.safetensors"
        if not path.exists():
            start = time.monotonic()
            sample = np.random.default_rng(self.recipe.seed).permutation(len(self.corpus))[: quantizer.sample]
            vectors = self.corpus.vectors(np.sort(sample)).cpu().numpy()
            codec = warm_up(
                vectors,
                quantizer.structure,
                quantizer.bytes,
                quantizer.codewords,
                rotate=rotate,
                turns=quantizer.turns,
                seed=self.recipe.seed,
                progress=as_progress("warm-up", self.observe),
            )
            rotation = {} if codec.map is None else {"rotation": codec.map.linear}
            seconds = np.array([time.monotonic() - start])
            self._write(path, save({"codebooks": codec.floats, "seconds": seconds} | rotation))
        if self.recipe.stage_one.distillation or self.recipe.stage_two.distillation:
            self.teacher = Teacher(copy.deepcopy(self.model), self.examples, self.scale, self.ranks, self.chunk)
        arrays = load_file(path)
        if "rotation" in arrays:
            self.model.rotate(arrays["rotation"])
        codec = make_codec(arrays["codebooks"], self.model.dimension)
        self.quantizer = quantizer_of(codec, self.model.is_normalized, quantizer.beam).to(self.model.device)
        return float(arrays["seconds"][0])

    def stage_one(self, loss_of: type[StageOneLoss] = StageOneLoss, sides: Sequence[Side] = SIDES) -> State:
        """Encoders and codebooks together, with static hard negatives that the warmed-up model retrieves."""
        settings, quantizer = self.recipe.stage_one, self.quantizer
        constraint = Constraint(settings.epsilon, settings.iterations, self.ranks.collectives)
        weight = paper_weight(len(quantizer.codebooks)) if settings.weight is None else settings.weight
        chosen, taught = constraint if settings.constraint and loss_of.constrained else None, settings.distillation
        loss = loss_of(quantizer, chosen, weight, self.scale, self.ranks, taught)
        validate = partial(self.corpus.measure_codes, quantizer)
        return self._contrast(
            settings, "stage-1", loss, validate, negatives="static", loss_with_codes=loss, sides=sides
        )

    def code(self) -> dict[str, float]:
        """Code all documents with their nearest codewords; from here on they are fixed. Gives the use of the codes."""
        path = self.folder / "codes.safetensors"
        if not path.exists():
            codes = self.corpus.codes(self.quantizer, self.corpus.everything, as_progress("coding", self.observe))
            self._write(path, save({"codes": codes.cpu().numpy()}))
        self.codes = load_file(path)["codes"]
        self.coding = self.quantizer.to_coding(self.codes)
        use = use_of(self.codes, self.quantizer.codebooks.shape[1]) | twins_of(self.codes)
        self._note({"phase": "coding", **use})
        return use

    def stage_two(self) -> State:
        """The query side and the codebooks, with dynamic negatives over the fixed codes."""
        self.model.separate_queries()
        settings = self.recipe.stage_two
        loss = settings.loss or paper_loss(self.codes.shape[1])
        return self._search_fixed(settings, "stage-2", self._fixed_codes(), by_lambda=loss == "lambda")

    def measure_codes(self) -> dict[str, float]:
        """What dev queries find in the whole corpus, with its fixed codes and the codebooks as they now are."""
        return self.corpus.measure(self._fixed_codes(), self.corpus.everything)

    # What they are made of

    def _batches(self, settings: Phase) -> Batches:
        seed, pieces = self.recipe.seed, self.recipe.pieces
        return Batches(self.examples, settings.batch, settings.epochs, seed, dropout=settings.dropout, pieces=pieces)

    def _contrast(
        self,
        settings: DensePhase | StageOne,
        name: str,
        loss: LossOf,
        validate: Callable[[], dict[str, float]],
        *,
        negatives: str,
        loss_with_codes: StageOneLoss | None = None,
        sides: Sequence[Side] = SIDES,
    ) -> State:
        batches = self._batches(settings)
        every = settings.refresh if isinstance(settings, DensePhase) and negatives == "refreshed" else batches.steps
        mined: dict[int, np.ndarray | None] = {}

        def backward(step: int) -> dict[str, float]:
            turn = step // every
            if turn not in mined:
                mined.clear()
                file = self.folder / f"{name}-negatives-{turn}.safetensors"
                mined[turn] = self._mine(settings.depth, file) if negatives != "in-batch" and settings.hard else None
            if loss_with_codes:
                loss_with_codes.step = step
            batch = own_part(batches.at(step, mined[turn], settings.hard), self.ranks)
            return contrast(self.model, self.examples, batch, loss, self.ranks, self.chunk, self._teacher_of(settings))

        quantizer = {"codebooks": self.quantizer.codebooks} if loss_with_codes else {}
        balance = loss_with_codes.balance if loss_with_codes else dict
        learns = self.model.trainable(sides)
        task = Task(name, batches.steps, learns, quantizer, backward, validate, balance, self._share)
        return self._fit(task, settings)

    def _search_fixed(
        self,
        settings: DensePhase | StageTwo,
        name: str,
        documents: FixedDocuments,
        *,
        by_lambda: bool,
    ) -> State:
        batches = self._batches(settings)

        def backward(step: int) -> dict[str, float]:
            return search_and_rank(
                self.model,
                self.examples,
                own_part(batches.at(step), self.ranks),
                documents,
                depth=settings.depth,
                scale=self.scale,
                by_lambda=by_lambda,
                ranks=self.ranks,
                chunk=self.chunk,
                teacher=self._teacher_of(settings),
                taught=settings.distillation if isinstance(settings, Taught) else 0.0,
            )

        codebooks = {"codebooks": documents.quantizer.codebooks} if isinstance(documents, FixedCodes) else {}
        validate = partial(self.corpus.measure, documents, self.corpus.everything)
        learns = self.model.trainable(["query"])
        task = Task(name, batches.steps, learns, codebooks, backward, validate, share=self._share)
        return self._fit(task, settings)

    @property
    def _share(self) -> float:
        return self.quantizer.share if hasattr(self, "quantizer") else 1.0

    def _teacher_of(self, settings: Phase) -> Teacher | None:
        return self.teacher if isinstance(settings, Taught) and settings.distillation else None

    def _fit(self, task: Task, settings: DensePhase | StageOne | StageTwo) -> State:
        path = self.folder / f"{task.name}.safetensors"
        state = fit(task, settings, path, self.ranks, self._note, self.save_every)
        self.ranks.wait()
        return state

    def _mine(self, depth: int, file: Path) -> np.ndarray:
        """[Q, n]: the top irrelevant documents of all labelled queries under the model as it is; pieces have none."""
        if not file.exists():
            numbers = self.ranks.share_of(np.arange(self.examples.labelled))
            queries = self.corpus.queries(self.examples.queries, numbers)
            relevant = [self.examples.relevant[number] for number in numbers.tolist()]
            found = top_irrelevant(queries, self._searchable(), relevant, depth)
            whole = torch.full((len(self.examples.queries), depth), -1, dtype=torch.int32)
            whole[: self.examples.labelled] = self.ranks.gather(found).int().cpu()
            self._write(file, save({"negatives": whole.numpy()}))
        self.ranks.wait()
        return load_file(file)["negatives"]

    def _searchable(self) -> Searchable:
        """All documents as the model now sees them: quantized from the warm-up on."""
        if not hasattr(self, "quantizer"):
            return Passing(self.corpus.vectors, len(self.corpus))
        codes = self.corpus.codes(self.quantizer, self.corpus.everything, as_progress("mining", self.observe))
        return FixedCodes(self.quantizer, codes)

    def _fixed_codes(self) -> FixedCodes:
        return FixedCodes(self.quantizer, torch.from_numpy(self.codes).to(self.model.device), self.coding)

    def _note(self, line: Line) -> None:
        self.history.append(line)
        self.observe(line)

    def _write(self, path: Path, content: bytes) -> None:
        """The first rank writes for all."""
        if self.ranks.is_first:
            with atomic_write(path) as file:
                file.write(content)
        self.ranks.wait()
