"""Metrics to TensorBoard and Weights & Biases, where they are installed and wanted."""

import os
from importlib.util import find_spec
from pathlib import Path

from repconc.training.loop import Line, Observer


def loggers(folder: Path) -> list[Observer]:
    """TensorBoard writes into `folder`; W&B takes part where its own variables ask for it."""
    found: list[Observer] = []
    if find_spec("tensorboard"):
        from torch.utils.tensorboard.writer import SummaryWriter

        writer = SummaryWriter(str(folder))

        def to_tensorboard(line: Line) -> None:
            for name, value in _values(line).items():
                writer.add_scalar(f"{line['phase']}/{name}", value, line.get("step", 0))
            writer.flush()

        found.append(to_tensorboard)
    if find_spec("wandb") and ("WANDB_API_KEY" in os.environ or "WANDB_MODE" in os.environ):
        import wandb

        run = wandb.init(project="repconc", name=folder.name)
        found.append(lambda line: run.log({f"{line['phase']}/{name}": value for name, value in _values(line).items()}))
    return found


def _values(line: Line) -> dict[str, float]:
    return {name: value for name, value in line.items() if isinstance(value, float)}
