"""The one training loop: dense training, stage 1 and stage 2 are tasks for it.

It holds what they share: AdamW with a rising and falling rate, clipping over all parameters, dev queries that choose
the checkpoint, and a checkpoint file from which a killed run goes on to the same end. A task gives a step's gradients;
because batches are a pure function of the step, the file needs to hold no more than weights, moments and the step.
"""

import json
import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import safetensors
import torch
from safetensors.torch import save as to_bytes
from torch import Tensor, nn

from repconc.errors import RepconcError
from repconc.files import atomic_write
from repconc.packages import Progress
from repconc.training.ranks import Ranks
from repconc.training.recipe import Phase

Line = dict[str, Any]
Observer = Callable[[Line], None]


def as_progress(phase: str, observe: Observer) -> Progress:
    """Progress of other work, in the form of a run's lines."""
    return lambda done, total: observe({"phase": phase, "step": done, "steps": total})


@dataclass
class Task:
    """What is trained, by which steps."""

    name: str
    steps: int
    encoder: dict[str, nn.Parameter]
    codebooks: dict[str, nn.Parameter]
    backward: Callable[[int], dict[str, float]]
    """Add the gradient of step i to the parameters; gives the parts of the loss."""
    validate: Callable[[], dict[str, float]]
    """Measures of the dev queries; the first chooses the checkpoint."""
    balance: Callable[[], dict[str, float]] = dict
    share: float = 1.0
    """Of the rate of codebooks that is set."""

    @property
    def parameters(self) -> dict[str, nn.Parameter]:
        return self.encoder | self.codebooks


@dataclass
class State:
    """How far a task has come."""

    step: int = 0
    best: float = -1.0
    best_step: int = 0
    stale: int = 0
    """Measurements in a row that were no better."""
    seconds: float = 0.0
    history: list[Line] = field(default_factory=list)


def fit(
    task: Task, settings: Phase, checkpoint: Path, ranks: Ranks, observe: Observer, save_every: float = 120.0
) -> State:
    """Train to the end, from the checkpoint if there is one; the parameters end as the best on dev.

    `save_every`: seconds between two checkpoints, which is what a kill can cost.
    """
    optimizer = torch.optim.AdamW(
        [
            {"params": list(task.encoder.values()), "base": settings.encoder_rate, "weight_decay": settings.decay},
            {
                "params": list(task.codebooks.values()),
                "base": settings.codebook_rate * task.share,
                "weight_decay": 0.0,
            },
        ],
        fused=True,
    )
    state, best = _resume(checkpoint, task, optimizer)
    for line in state.history:
        observe(line)
    every = max(1, task.steps // settings.evaluations)
    log_every = max(1, task.steps // 200)
    started, saved = time.monotonic() - state.seconds, time.monotonic()
    if not state.history:
        best = _validate(task, state, best, ranks, observe, time.monotonic() - started)
    while state.step < task.steps and (settings.patience is None or state.stale < settings.patience):
        for group in optimizer.param_groups:
            group["lr"] = group["base"] * rate_at(state.step, task.steps, settings.warmup)
        optimizer.zero_grad()
        losses = task.backward(state.step)
        ranks.sum_gradients(task.parameters.values())
        length = nn.utils.clip_grad_norm_(task.parameters.values(), settings.clip or math.inf)
        if not all(map(math.isfinite, [*losses.values(), float(length)])):
            raise RepconcError(
                f"The loss is not a number at step {state.step + 1} of {task.name}; the last checkpoint is kept: "
                "train again under another name with lower rates or a smaller scale."
            )
        optimizer.step()
        state.step += 1
        state.seconds = time.monotonic() - started
        if state.step % log_every == 0 or state.step == task.steps:
            _note(state, observe, {"phase": task.name, "step": state.step, "steps": task.steps, **losses})
        if (state.step % every == 0 and task.steps - state.step >= every) or state.step == task.steps:
            best = _validate(task, state, best, ranks, observe, state.seconds)
        if ranks.is_first and (time.monotonic() - saved >= save_every or state.step == task.steps):
            _save(checkpoint, task, optimizer, state, best)
            saved = time.monotonic()
    if ranks.is_first and state.step < task.steps:  # it lost patience, and is not to begin again there
        _save(checkpoint, task, optimizer, state, best)
    with torch.no_grad():
        for name, parameter in task.parameters.items():
            parameter.copy_(best[name])
    return state


def rate_at(step: int, steps: int, warmup: float) -> float:
    """The share of the base rate at a step: up in a straight line, then down to zero at the end."""
    rising = math.ceil(steps * warmup)
    return (step + 1) / rising if step < rising else (steps - step) / max(1, steps - rising)


def _validate(
    task: Task, state: State, best: dict[str, Tensor], ranks: Ranks, observe: Observer, seconds: float
) -> dict[str, Tensor]:
    """Measure the dev queries; gives the best weights so far."""
    measures = {name: ranks.first(value) for name, value in task.validate().items()}  # all keep the same checkpoint
    balance = task.balance() if state.step else {}
    line = {"phase": task.name, "step": state.step, "steps": task.steps, "seconds": round(seconds, 1)}
    _note(state, observe, {**line, **measures, **balance})
    first = next(iter(measures.values()))
    if first <= state.best:
        state.stale += 1
        return best
    state.best, state.best_step, state.stale = first, state.step, 0
    return {name: parameter.detach().clone() for name, parameter in task.parameters.items()}


def _note(state: State, observe: Observer, line: Line) -> None:
    state.history.append(line)
    observe(line)


def _save(path: Path, task: Task, optimizer: torch.optim.Optimizer, state: State, best: dict[str, Tensor]) -> None:
    tensors = {}
    for name, parameter in task.parameters.items():
        tensors[f"weights/{name}"] = parameter.detach()
        tensors[f"best/{name}"] = best[name]
        for moment, value in optimizer.state[parameter].items():
            tensors[f"{moment}/{name}"] = value
    described = {**vars(state), "task": task.name, "steps": task.steps}
    with atomic_write(path) as file:
        file.write(to_bytes({key: value.cpu() for key, value in tensors.items()}, {"state": json.dumps(described)}))


def _resume(path: Path, task: Task, optimizer: torch.optim.Optimizer) -> tuple[State, dict[str, Tensor]]:
    """The state of the checkpoint, its weights put in place; a fresh one where there is none."""
    if not path.exists():
        return State(), {}
    try:
        with safetensors.safe_open(path, framework="pt") as file:
            described = json.loads(file.metadata()["state"])
            tensors = {key: file.get_tensor(key) for key in file.keys()}  # noqa: SIM118 (it is no dictionary)
        if (described.pop("task"), described.pop("steps")) != (task.name, task.steps):
            raise KeyError("task")
        best = {}
        for name, parameter in task.parameters.items():
            parameter.data.copy_(tensors[f"weights/{name}"])
            best[name] = tensors[f"best/{name}"].to(parameter.device)
            if f"step/{name}" in tensors:  # a parameter that no loss reads has no moments
                moments = ("step", "exp_avg", "exp_avg_sq")
                optimizer.state[parameter] = {key: tensors[f"{key}/{name}"].to(parameter.device) for key in moments}
        return State(**described), best
    except (safetensors.SafetensorError, KeyError, TypeError, ValueError, RuntimeError) as error:
        raise RepconcError(f"The checkpoint {path} is damaged or of another run; remove it to begin again.") from error
