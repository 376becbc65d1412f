"""`train`: a labelled set and a recipe in, a model folder out; killed anywhere, the same call goes on.

All that a run needs to go on lies in a folder beside the model, `MODEL.training/`. The model folder appears whole at
the end, and the other one goes.
"""

import json
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from repconc.config import Settings
from repconc.data.dataset import RetrievalDataset
from repconc.errors import RepconcError
from repconc.files import locked, read_model, remove_partials, remove_whole, write_model
from repconc.models.dual import DualEncoder
from repconc.models.encoder import Encoder
from repconc.models.manifest import MANIFEST, ModelManifest
from repconc.models.repconc import RepconcModel, save_model
from repconc.training.dpq import DifferentiableLoss
from repconc.training.loop import Observer
from repconc.training.possible import refuse_impossible
from repconc.training.ranks import Ranks
from repconc.training.reading import Labelled, make_examples, read
from repconc.training.recipe import Recipe, choose_codes, with_codes
from repconc.training.report import draw_report
from repconc.training.stage_one import StageOneLoss
from repconc.training.trainer import Trainer

PLAN = "plan.json"
ADDITIVE = (
    "{:,} documents are enough for additive codes, which cannot be exported to faiss or Lance; "
    "ask for codes product to have the paper's."
)
OTHERWISE = "remove it, choose another name, or go on with it by --resume"


class Plan(Settings):
    """What a run is, fixed before its first step: a folder that was begun with another plan is refused."""

    recipe: Recipe
    dataset: str
    corpus_sha256: str
    labels_sha256: str
    fingerprint: str
    vectors: str | None = None


def train(
    dataset: RetrievalDataset,
    output: Path | str,
    recipe: Recipe,
    *,
    device: str | None = None,
    vectors: Path | str | None = None,
    observe: Observer = lambda line: None,
    say: Callable[[str], None] = lambda sentence: None,
) -> RepconcModel:
    """Run all phases of a recipe. vectors: what `repconc encode` made of the corpus, for heads.

    A recipe that does not say which codes gets those of `choose_codes`; say: hears it where they are not the paper's.
    """
    output, ranks = named(Path(output)), Ranks()
    if (output / MANIFEST).exists() and training_folder(output).exists():  # killed after its last step
        shutil.rmtree(training_folder(output), ignore_errors=True)
        return RepconcModel.load(output, device)
    if output.exists() and (not output.is_dir() or any(output.iterdir())):
        raise RepconcError(f"{output} is there already; remove it first, or choose another name.")
    data = read(dataset, recipe, observe)  # before anything is written: it may be refused
    _refuse_compressed(Path(recipe.encoder.documents))
    encoder = Encoder(recipe.encoder, device)
    model = make_model(encoder, recipe)
    codes = choose_codes(recipe, len(data.document_ids), encoder.dimension, model.is_normalized)
    is_told = recipe.quantizer.codes is not None or codes == "product"
    recipe = with_codes(recipe, codes)
    refuse_impossible(
        recipe,
        dimension=encoder.dimension,
        documents=len(data.document_ids),
        pairs=sum(map(len, data.relevant[1])),
        ranks=ranks.count,
    )
    folder = training_folder(output)
    with only_trainer(folder, ranks):
        agree_on_plan(folder, _plan(data, recipe, encoder, vectors), ranks, OTHERWISE)
        if ranks.is_first and not is_told:
            say(ADDITIVE.format(len(data.document_ids)))
        where = Path(vectors or folder / "vectors")
        examples = make_examples(data, encoder, recipe, where, folder, ranks, observe)
        trainer = Trainer(model, examples, recipe, folder, ranks, observe)
        figures = run_phases(trainer)
        if ranks.is_first:
            _save(trainer, output, dataset.name, encoder, figures)
            remove_whole(folder)
        ranks.wait()
    return RepconcModel.load(output, device)


def _refuse_compressed(folder: Path) -> None:
    """A rotation that is already there would be trained along, and a second one put behind it."""
    if (folder / MANIFEST).exists() and read_model(folder / MANIFEST, ModelManifest).bytes is not None:
        raise RepconcError(f"{folder} is compressed already; start from the dense model that it was made from.")


def make_model(encoder: Encoder, recipe: Recipe) -> DualEncoder:
    """The two sides as the recipe wants them trained."""
    model = DualEncoder.of(encoder, shared=recipe.shared, heads=recipe.train == "heads")
    model.learns_in_half = recipe.precision == "bfloat16"
    if recipe.frozen_layers:
        model.freeze_layers(recipe.frozen_layers)
    return model


def run_phases(trainer: Trainer) -> dict[str, dict[str, float]]:
    """The straight walk through training; gives each phase's figures on dev."""
    recipe, measure, figures = trainer.recipe, trainer.examples.validation.measure, {}
    for number, phase in enumerate(recipe.dense, start=1):
        figures[f"dense {number}, {phase.negatives}"] = {measure: trainer.dense(phase, f"dense-{number}").best}
    if recipe.method == "dense":
        return figures
    trainer.warm_up(rotate=recipe.method != "pq")
    if recipe.method in ("repconc", "dpq"):
        loss = StageOneLoss if recipe.method == "repconc" else DifferentiableLoss
        figures["stage 1"] = {measure: trainer.stage_one(loss).best}
    figures["codes"] = trainer.code() | trainer.measure_codes()
    if recipe.method in ("repconc", "jpq"):
        figures["stage 2"] = {measure: trainer.stage_two().best}
    return figures


def named(output: Path) -> Path:
    """A path that ends with a name, also where the user wrote a dot."""
    return output if output.name else output.resolve()


def training_folder(output: Path) -> Path:
    return named(output).with_name(f"{named(output).name}.training")


def read_plan(output: Path) -> Plan:
    """What a run that was interrupted had set out to do."""
    path = training_folder(output) / PLAN
    if not path.exists():
        raise RepconcError(f"There is no interrupted training of {output} to go on with.")
    return read_model(path, Plan)


def _save(trainer: Trainer, output: Path, dataset: str, encoder: Encoder, figures: dict[str, dict[str, float]]) -> None:
    recipe, compressed = trainer.recipe, trainer.recipe.method != "dense"
    about = {
        "method": recipe.method,
        "dataset": dataset,
        "recipe": recipe.model_dump(mode="json"),
        "figures": figures,
        "document_tokens": encoder.settings.document_tokens,
        "query_tokens": encoder.settings.query_tokens,
    }
    lines = "".join(json.dumps(line) + "\n" for line in trainer.history)
    files = {"training.jsonl": lines.encode()} | draw_report(trainer.history)
    coding, scoring = (trainer.coding, trainer.quantizer.to_codec()) if compressed else (None, None)
    save_model(output, trainer.model, coding, scoring, about, files)


@contextmanager
def only_trainer(folder: Path, ranks: Ranks) -> Iterator[None]:
    """One run at a time in a folder; of several ranks, the first holds the lock."""
    if not ranks.is_first:
        yield
        return
    _refuse_foreign(folder)
    try:
        with locked(folder / PLAN, wait=False):
            remove_partials(folder)
            remove_partials(folder.parent, of=folder.stem)  # of the model itself, killed while it was saved
            remove_partials(folder.parent, of=folder.name)  # killed while it was removed
            try:
                yield
            finally:
                if folder.exists() and not (folder / PLAN).exists():  # nothing was begun
                    shutil.rmtree(folder)
    except BlockingIOError as error:
        raise RepconcError(f"Another process is training in {folder}; wait for it, or choose another name.") from error


def _refuse_foreign(folder: Path) -> None:
    """What lies there goes at the end, so it must be ours."""
    if folder.exists() and not folder.is_dir():
        raise RepconcError(f"{folder} is there already and no folder; choose another name.")
    for path in folder.iterdir() if folder.exists() and not (folder / PLAN).exists() else ():
        if not path.name.startswith(f".{PLAN}."):  # its lock, or what a killed process left of it
            raise RepconcError(f"{folder} holds other things, such as {path.name}; choose another name.")


def _plan(data: Labelled, recipe: Recipe, encoder: Encoder, vectors: Path | str | None) -> Plan:
    return Plan(
        recipe=recipe,
        dataset=data.dataset.name,
        corpus_sha256=data.digest.hexdigest(),
        labels_sha256=data.labels_sha256(),
        fingerprint=encoder.fingerprint(),
        vectors=None if vectors is None else str(Path(vectors).resolve()),
    )


def agree_on_plan(folder: Path, plan: Settings, ranks: Ranks, else_do: str) -> None:
    """Begin with a plan, or go on with the same one. else_do: what to do about another."""
    path = folder / PLAN
    if ranks.is_first and not path.exists():
        write_model(path, plan)
    ranks.wait()
    before = read_model(path, type(plan))
    differing = [name for name in type(plan).model_fields if getattr(before, name) != getattr(plan, name)]
    if differing:
        raise RepconcError(f"{folder} holds a run that was begun with another {' and '.join(differing)}: {else_do}.")
