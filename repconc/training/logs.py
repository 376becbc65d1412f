"""Metrics to TensorBoard and Weights & Biases, where they are installed and wanted."""

import os
from collections.abc import Callable
from functools import cache, partial
from importlib.util import find_spec
from pathlib import Path

from repconc.training.loop import Line, Observer

Write = Callable[[dict[str, float], int], None]


def loggers(folder: Path) -> list[Observer]:
    """TensorBoard writes into `folder`; W&B takes part where its own variables ask for it.

    A run that goes on after a kill tells its past again, so each log is whole.
    """
    found: list[Observer] = []
    if find_spec("tensorboard"):
        found.append(_late(partial(_tensorboard, folder)))
    if find_spec("wandb") and ("WANDB_API_KEY" in os.environ or "WANDB_MODE" in os.environ):
        found.append(_late(partial(_wandb, folder.name)))
    return found


def _late(begin: Callable[[], Write]) -> Observer:
    """Begin with the first figure: a run that is refused leaves nothing behind."""
    begun = cache(begin)

    def observe(line: Line) -> None:
        values = {f"{line['phase']}/{name}": value for name, value in line.items() if isinstance(value, float)}
        if values:
            begun()(values, line.get("step", 0))

    return observe


def _tensorboard(folder: Path) -> Write:
    from torch.utils.tensorboard.writer import SummaryWriter

    writer = SummaryWriter(str(folder))

    def write(values: dict[str, float], step: int) -> None:
        for name, value in values.items():
            writer.add_scalar(name, value, step)
        writer.flush()

    return write


def _wandb(name: str) -> Write:
    import wandb

    run = wandb.init(project="repconc", name=name)
    run.define_metric("*", step_metric="step")  # each phase counts its own
    return lambda values, step: run.log(values | {"step": step})
