"""Suite `step`: what quantization adds to a training step, and what the search adds to a step of stage 2.

Real questions and paragraphs of HotpotQA, 48 bytes a document with MiniLM-L6 and 16 with the static encoder, whole
encoders trained. A step is forward, loss, backward and update. Codes of stage 2 are random: their values change nothing
in the time.
"""

from collections.abc import Callable, Iterator

import numpy as np
import torch

from benchmarks.figures import Figure, interleaved
from benchmarks.rivals.foreign_trainer import stage_one_pairs_per_second, stage_two_pairs_per_second
from repconc import Encoder, load_dataset
from repconc.data.catalogue import folder_of, get
from repconc.models.dual import DualEncoder
from repconc.models.inputs import Texts
from repconc.quantization.product import ProductQuantizer
from repconc.quantization.quantizer import Constraint
from repconc.training.dense import dense_loss
from repconc.training.examples import Batch, Examples, Validation
from repconc.training.negatives import FixedCodes, top_irrelevant
from repconc.training.ranks import Ranks
from repconc.training.stage_one import StageOneLoss
from repconc.training.stage_two import search_and_rank
from repconc.training.step import contrast

SCALE = 20.0


def run(quick: bool) -> Iterator[Figure]:
    documents, queries = _texts()
    repeats = 1 if quick else 5
    for name, size, M, goal in (("minilm", 32 if quick else 128, 48, "<= 1.25"), ("static", 1024, 16, None)):
        bench = _Bench(name, documents[: 2 * size], queries[:size], M)
        seconds = interleaved({"dense": bench.dense, "stage 1": bench.stage_one}, repeats)
        rival = f"the same step without quantization: {name}, {size} pairs with one hard negative, {M} bytes"
        yield Figure(f"stage 1 step, {name}", seconds["stage 1"], "s")
        yield Figure(f"stage 1 step over dense step, {name}", seconds["stage 1"] / seconds["dense"], "x", rival, goal)
    size = 32 if quick else 128
    bench = _Bench("minilm", documents[:size], queries[:size], 48, fixed=len(documents))
    seconds = interleaved({"step": bench.stage_two, "search": bench.search}, repeats)
    whole = f"the whole step: {size} queries search {len(documents):,} documents of 48 bytes"
    yield Figure("stage 2 step, minilm", seconds["step"], "s")
    yield Figure("search's share of stage 2 step", seconds["search"] / seconds["step"], "share", whole, "<= 0.5")
    yield from _loops(documents, queries, quick)


def _loops(documents: list[str], queries: list[str], quick: bool) -> Iterator[Figure]:
    """Our loop against the trainer of sentence-transformers, with the static encoder and the same batch."""
    rival, steps = "the trainer of sentence-transformers", 4 if quick else 20
    bench = _Bench("static", documents[:1024], queries[:512], 16)
    ours = 512 / interleaved({"": bench.stage_one}, steps)[""]
    theirs = stage_one_pairs_per_second(documents[:1024], queries[:512], bench.quantizer, steps)
    yield Figure("stage 1 pairs a second, static", ours, "1/s")
    yield Figure("stage 1 pairs a second, ratio", ours / theirs, "x", rival)
    bench = _Bench("static", documents[:128], queries[:128], 16, fixed=len(documents))
    ours = 128 / interleaved({"": bench.stage_two}, steps)[""]
    theirs = stage_two_pairs_per_second(queries[:128], bench.documents, steps)
    yield Figure("stage 2 pairs a second, static", ours, "1/s")
    yield Figure("stage 2 pairs a second, ratio", ours / theirs, "x", rival)


def _texts() -> tuple[list[str], list[str]]:
    if not folder_of("hotpotqa").is_dir():
        get("hotpotqa")
    dataset = load_dataset("hotpotqa")
    return [document.full_text for document in dataset.documents], [query.text for query in dataset.queries("train")]


class _Bench:
    """One encoder, one batch, and the steps to time."""

    def __init__(self, name: str, documents: list[str], queries: list[str], M: int, fixed: int = 0) -> None:
        encoder, B = Encoder(name, device="cpu"), len(queries)
        self.model, self.ranks = DualEncoder.of(encoder), Ranks()
        inputs = Texts(encoder, "document", documents), Texts(encoder, "query", queries)
        nobody = Validation([], inputs[1], {}, 1, np.arange(0))
        self.examples = Examples([], *inputs, [np.array([number]) for number in range(B)], B, nobody)
        self.batch = Batch(np.arange(B), np.arange(len(documents)))
        self.chunk = 64 if name == "minilm" else 1 << 30
        generator = torch.Generator().manual_seed(0)
        codebooks = torch.randn(M, 256, self.model.dimension // M, generator=generator) / self.model.dimension**0.5
        self.quantizer = ProductQuantizer(codebooks, self.model.dimension)
        self.loss = StageOneLoss(self.quantizer, Constraint(), 0.05, SCALE, self.ranks)
        codes = torch.randint(256, (fixed, M), generator=generator).to(torch.uint8)
        self.documents = FixedCodes(self.quantizer, codes)
        parameters = [*self.model.trainable().values(), self.quantizer.codebooks]
        self.optimizer = torch.optim.AdamW(parameters, lr=1e-9, fused=True)

    def dense(self) -> None:
        self._step(lambda: contrast(self.model, self.examples, self.batch, dense_loss(SCALE), self.ranks, self.chunk))

    def stage_one(self) -> None:
        self._step(lambda: contrast(self.model, self.examples, self.batch, self.loss, self.ranks, self.chunk))

    def stage_two(self) -> None:
        self._step(
            lambda: search_and_rank(
                self.model,
                self.examples,
                self.batch,
                self.documents,
                depth=200,
                scale=SCALE,
                by_lambda=False,
                ranks=self.ranks,
                chunk=self.chunk,
            )
        )

    def search(self) -> None:
        queries = torch.randn(len(self.batch.queries), self.model.dimension)
        top_irrelevant(queries, self.documents, self.examples.relevant, 200)

    def _step(self, backward: Callable[[], object]) -> None:
        self.optimizer.zero_grad()
        backward()
        self.optimizer.step()
