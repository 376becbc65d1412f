"""`repconc train`: encoders and quantizer, from a labelled set."""

import json
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from repconc.cli.options import Dataset, Json, Quiet, remark
from repconc.errors import RepconcError
from repconc.training.recipe import Codes, Method
from repconc.training.view import TrainingView


def train(
    dataset: Dataset,
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder for the model.")],
    encoder: Annotated[
        str | None, typer.Option(help="minilm, static, a folder or a name on the hub. [default: the recipe's]")
    ] = None,
    bytes: Annotated[int | None, typer.Option(min=1, help="Bytes a document. [default: the recipe's, 16]")] = None,
    codes: Annotated[
        Codes | None,
        typer.Option(
            help="Codewords in blocks, or whole ones. [default: the recipe's; else additive for a large corpus]"
        ),
    ] = None,
    method: Annotated[Method | None, typer.Option(help="[default: the recipe's, repconc]")] = None,
    what: Annotated[
        Literal["all", "heads"] | None,
        typer.Option("--train", help="The whole encoders, or a linear map behind frozen ones. [default: the recipe's]"),
    ] = None,
    trained: Annotated[bool, typer.Option("--trained", help="The encoder is trained already: no dense phase.")] = False,
    recipe: Annotated[
        str | None,
        typer.Option(help="A TOML file, or one of recipes/ by name. [default: static, heads or transformer]"),
    ] = None,
    vectors: Annotated[
        Path | None, typer.Option(help="For heads: what `repconc encode` made of this data set.")
    ] = None,
    device: Annotated[str | None, typer.Option(help="cpu, cuda, mps. [default: the best there is]")] = None,
    seed: Annotated[int | None, typer.Option(min=0, help="[default: the recipe's, 0]")] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on with what was interrupted, whatever the other options say.")
    ] = False,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Dense training, warm-up, stage 1, coding, stage 2. Killed at any point, the same command goes on.

    Example: repconc train hotpotqa -o model/ --encoder static --bytes 16
    """
    from repconc.data.load import load_dataset
    from repconc.models.named import is_static
    from repconc.training.logs import loggers
    from repconc.training.loop import Observer
    from repconc.training.pipeline import read_plan
    from repconc.training.pipeline import train as run
    from repconc.training.ranks import Ranks
    from repconc.training.recipe import make_recipe, read_recipe

    if resume:
        plan = read_plan(output)
        chosen, vectors = plan.recipe, Path(plan.vectors) if plan.vectors else None
    else:
        recipe = recipe or ("heads" if what == "heads" else "static" if is_static(encoder) else "transformer")
        values = read_recipe(recipe)
        _set(values, "encoder", "documents", encoder)
        _set(values, "quantizer", "bytes", bytes)
        _set(values, "quantizer", "codes", codes)
        values |= {
            name: value for name, value in (("method", method), ("train", what), ("seed", seed)) if value is not None
        }
        if trained:
            values["dense"] = []
        chosen = make_recipe(values, recipe)
    loaded = load_dataset(dataset)
    first = Ranks().is_first
    with TrainingView(quiet or not first) as view:
        observers: list[Observer] = [view, *(loggers(Path("runs") / output.name) if first else [])]

        def observe(line: dict[str, Any]) -> None:
            for observer in observers:
                observer(line)

        say = partial(remark, quiet=quiet or not first)
        model = run(loaded, output, chosen, device=device, vectors=vectors, observe=observe, say=say)
    if first:
        manifest = model.manifest
        remark(json.dumps(manifest.figures, indent=2), quiet or as_json)
        made = {"model": str(output), "codes": manifest.structure, "figures": manifest.figures}
        typer.echo(json.dumps(made) if as_json else output)


def _set(values: dict[str, Any], table: str, name: str, value: Any) -> None:
    if value is not None:
        if not isinstance(values.setdefault(table, {}), dict):
            raise RepconcError(f"In the recipe, {table} must be a table: [{table}] with its settings below.")
        values[table][name] = value
