"""A recipe: all that decides a training run, read from TOML, saved inside the model.

Values that the paper does not give, or that small sets need otherwise, were chosen on dev queries (see the recipes).
"""

import math
import tomllib
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, PositiveInt, ValidationError

from repconc.additive import BEAM, WIDEST_BEAM
from repconc.config import EncoderSettings, Settings
from repconc.errors import RepconcError, first_line

Codes = Literal["product", "additive"]
Method = Literal["repconc", "jpq", "dpq", "opq", "pq", "dense"]
Negatives = Literal["in-batch", "static", "refreshed", "dynamic"]
Ranking = Literal["softmax", "lambda"]


class Phase(Settings):
    """What every phase of training has."""

    epochs: float = Field(default=20, gt=0, le=100_000)
    """Passes over all pairs of a query and a relevant document."""
    batch: int = Field(default=1024, ge=1, le=10_000_000)
    """Pairs a step, over all processes."""
    encoder_rate: float = Field(default=1e-3, gt=0)
    codebook_rate: float = Field(default=1e-3, gt=0)
    warmup: float = Field(default=0.1, ge=0, le=1)
    """Share of the steps in which the rates rise; then they fall to zero, in a straight line."""
    decay: float = Field(default=0.01, ge=0)
    dropout: float = Field(default=0.0, ge=0, lt=1)
    """Share of the tokens that are left out of each text, others in each step; for heads, of the coordinates."""
    clip: float | None = Field(default=1.0, gt=0)
    """Longest gradient of all parameters together; longer ones are scaled down."""
    evaluations: int = Field(default=8, ge=1, le=1_000_000)
    """How often dev queries are measured; the best checkpoint stays."""
    patience: int | None = Field(default=None, ge=1)
    """So many measurements in a row that are no better end the phase; None: it goes to its end."""


class DensePhase(Phase):
    """Training without quantization, by what its negatives are.

    in-batch: RepBERT; static: STAR; refreshed: ANCE; dynamic over a fixed document index: ADORE.
    """

    negatives: Negatives = "static"
    hard: int = Field(default=1, ge=0, le=1000)
    """Hard negatives a pair, drawn anew in each epoch from the top `depth`."""
    depth: int = Field(default=200, ge=1, le=10_000)
    refresh: int = Field(default=200, ge=1, le=1_000_000_000)
    """Steps between two searches for negatives, where they are refreshed."""


class Taught(Phase):
    """A phase over quantized documents, which the uncompressed encoders may teach."""

    distillation: float = Field(default=0.0, ge=0, le=1)
    """The share of the ranking loss that is taken over by the scores of the encoders before compression: where labels
    are few, or hard negatives are often right answers that nobody marked. Not in the paper."""


class StageOne(Taught):
    """Ranking over quantized documents, clustering, and the constraint of uniform use."""

    hard: int = Field(default=1, ge=0, le=1000)
    depth: int = Field(default=200, ge=1, le=10_000)
    weight: float | None = Field(default=None, ge=0)
    """The lambda of the clustering loss; None: the paper's table by M."""
    constraint: bool = True
    epsilon: float = Field(default=0.003, gt=0)
    iterations: int = Field(default=100, ge=1, le=100_000)


class StageTwo(Taught):
    """Dynamic hard negatives over fixed codes."""

    batch: int = Field(default=128, ge=1, le=10_000_000)
    epochs: float = Field(default=5, gt=0, le=100_000)
    encoder_rate: float = Field(default=2e-4, gt=0)
    codebook_rate: float = Field(default=2e-4, gt=0)
    depth: int = Field(default=200, ge=1, le=10_000)
    """Irrelevant documents a query, searched at every step."""
    loss: Ranking | None = None
    """None: the paper's, LambdaLoss for 4 bytes and fewer."""


class Quantizer(Settings):
    """The structure and size of a code, and its warm-up."""

    codes: Codes | None = None
    """Codewords in blocks of their own ("product", as in the paper), or whole ones that are added up ("additive").
    None: product, but for `train` on a large corpus (choose_codes)."""
    bytes: int = Field(default=16, ge=1, le=65536)
    codewords: int = Field(default=256, ge=1, le=256)
    sample: int = Field(default=65536, ge=1, le=1_000_000_000)
    """Document vectors that the warm-up learns from; all where there are fewer."""
    turns: int = Field(default=50, ge=1, le=10_000)
    """Of OPQ, or rounds in which additive codes learn all levels together."""
    beam: int = Field(default=BEAM, ge=1, le=WIDEST_BEAM)
    """Partial codes that are kept while documents get additive codes: more are slower and closer."""

    @property
    def structure(self) -> Codes:
        """Where nothing chooses it by the size of the corpus."""
        return self.codes or "product"


class Recipe(Settings):
    """One training run."""

    method: Method = "repconc"
    train: Literal["all", "heads"] = "all"
    shared: bool = True
    """Queries and documents share one encoder until stage 2. Heads are always one for each side."""
    frozen_layers: int = Field(default=0, ge=0)
    """Transformer layers from below that do not learn, and the embeddings with them."""
    scale: float | None = Field(default=None, gt=0)
    """What scores are multiplied by in the loss; None: 20 for vectors of length 1, else 1."""
    precision: Literal["float32", "bfloat16"] = "float32"
    """Of a transformer's products in training steps; weights, losses and codes are in float32 always."""
    chunk: int = Field(default=64, ge=1, le=1_000_000_000)
    """Texts that go through a transformer at a time; it changes memory, not the result."""
    pieces: float = Field(default=0.0, ge=0, le=1000)
    """Pieces of documents that stand in for queries: so many times the labelled pairs, others in each epoch. Few
    labels are soon learned by heart; with pieces every document of the corpus has a question to answer."""
    validation_split: str = "dev"
    validation_documents: PositiveInt | None = None
    """How many documents dev queries search while an encoder learns; None: all. Stage 2 always searches all."""
    seed: int = Field(default=0, ge=0, lt=2**31)
    encoder: EncoderSettings = EncoderSettings()
    dense: tuple[DensePhase, ...] = (DensePhase(),)
    """Empty: the encoder is trained already."""
    quantizer: Quantizer = Quantizer()
    stage_one: StageOne = StageOne()
    stage_two: StageTwo = StageTwo()


LAMBDAS = {4: 0.3, 8: 0.2, 12: 0.1, 16: 0.07, 24: 0.05, 32: 0.05, 48: 0.05}


def paper_weight(blocks: int) -> float:
    """The paper's lambda by M; between its sizes that of the nearest in log M."""
    return LAMBDAS[min(LAMBDAS, key=lambda known: abs(math.log(known / blocks)))]


def paper_loss(blocks: int) -> Ranking:
    """The paper's ranking loss of stage 2 by M: LambdaLoss for the shortest codes only."""
    return "lambda" if blocks <= 4 else "softmax"


DOCUMENTS_A_DIMENSION, DIMENSIONS_A_BYTE, FEWEST_BYTES, CODEWORDS = 2048, 16, 4, 256
"""How large a corpus and which codes additive ones are the default for. Codes of these sizes were measured on two small
corpora, and the size of the corpus is computed from that (docs/results.md, "Additive beside product codes")."""


def choose_codes(recipe: Recipe, documents: int, dimension: int, unit: bool) -> Codes:
    """What the recipe says; else additive codes where they should win per byte of everything, or the paper's.

    Their codebooks have a byte for each level, codeword and dimension, so the corpus must be the larger the more
    dimensions there are. unit: whether vectors have length 1; others were not measured.
    """
    quantizer = recipe.quantizer
    is_like_measured = (
        unit
        and recipe.method == "repconc"
        and FEWEST_BYTES <= quantizer.bytes <= dimension // DIMENSIONS_A_BYTE
        and quantizer.codewords == CODEWORDS
    )
    is_large = documents >= DOCUMENTS_A_DIMENSION * dimension
    return "additive" if quantizer.codes is None and is_like_measured and is_large else quantizer.structure


def with_codes(recipe: Recipe, codes: Codes) -> Recipe:
    return recipe.model_copy(update={"quantizer": recipe.quantizer.model_copy(update={"codes": codes})})


RECIPES = Path(__file__).parent.parent / "recipes"


def read_recipe(name: Path | str) -> dict[str, Any]:
    """The values that a TOML file sets, or one of our recipes by its name; the rest keeps its defaults."""
    path = Path(name)
    if not path.exists():
        ours = {recipe.stem: recipe for recipe in sorted(RECIPES.glob("*.toml"))}
        if str(name) not in ours:
            raise RepconcError(f"{str(name)!r} is neither a file nor a recipe of ours ({', '.join(ours)}).")
        path = ours[str(name)]
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError, IsADirectoryError) as error:
        raise RepconcError(f"{path} is not a TOML file: {first_line(error)}.") from error


def make_recipe(values: dict[str, Any], source: str = "The recipe") -> Recipe:
    """Check the values of a recipe."""
    try:
        return Recipe.model_validate(values)
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(map(str, first["loc"]))
        raise RepconcError(f"{source}: {field} is not allowed so ({first['msg']}).") from error
