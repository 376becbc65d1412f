"""The loop: killed and resumed it ends where an unbroken run ends; rates, clipping, choice of checkpoint."""

import pytest
import torch
from safetensors.torch import load_file
from torch import nn

from repconc import RepconcError
from repconc.training.loop import Task, fit, rate_at
from repconc.training.ranks import Ranks
from repconc.training.recipe import Phase


class Stop(BaseException):
    """A kill."""


def make_task(steps=12, stop_at=None, values=None, factor=1.0):
    """Least squares over an encoder and codebooks; dev measures come from a list."""
    generator = torch.Generator().manual_seed(0)
    encoder = nn.Parameter(torch.randn(5, 3, generator=generator))
    codebooks = nn.Parameter(torch.randn(2, 3, generator=generator))
    data = torch.randn(steps, 7, 5, generator=generator)
    measured = iter(values) if values else None

    def backward(step):
        if step == stop_at:
            raise Stop
        loss = factor * ((data[step] @ encoder).sum(dim=0) - codebooks).square().mean()
        loss.backward()
        return {"ranking": float(loss.detach())}

    def validate():
        return {"MRR@10": next(measured) if measured else float(1 / (1 + encoder.detach().square().sum()))}

    return Task("stage-1", steps, {"encoder": encoder}, {"codebooks": codebooks}, backward, validate)


SETTINGS = Phase(epochs=1, encoder_rate=0.05, codebook_rate=0.1, evaluations=4)


@pytest.mark.parametrize("stop_at", [1, 5, 11])
def test_killed_after_a_step_it_ends_with_the_same_weights_and_moments(tmp_path, stop_at):
    lines = []
    unbroken = make_task()
    fit(unbroken, SETTINGS, tmp_path / "one.safetensors", Ranks(), lines.append, save_every=0)
    with pytest.raises(Stop):
        fit(make_task(stop_at=stop_at), SETTINGS, tmp_path / "two.safetensors", Ranks(), lambda _: None, save_every=0)
    again, resumed = [], make_task()
    fit(resumed, SETTINGS, tmp_path / "two.safetensors", Ranks(), again.append, save_every=0)
    one, two = load_file(tmp_path / "one.safetensors"), load_file(tmp_path / "two.safetensors")
    assert one.keys() == two.keys()
    assert {"exp_avg/codebooks", "exp_avg_sq/encoder", "best/codebooks", "weights/encoder"} <= one.keys()
    assert all(torch.equal(one[name], two[name]) for name in one)
    assert all(torch.equal(unbroken.parameters[name], resumed.parameters[name]) for name in unbroken.parameters)
    timeless = [{key: value for key, value in line.items() if key != "seconds"} for line in lines]
    assert timeless == [{key: value for key, value in line.items() if key != "seconds"} for line in again]


def test_a_finished_task_is_not_trained_again(tmp_path):
    fit(make_task(), SETTINGS, tmp_path / "c.safetensors", Ranks(), lambda _: None)
    fit(make_task(stop_at=0), SETTINGS, tmp_path / "c.safetensors", Ranks(), lambda _: None)


def test_the_best_checkpoint_on_dev_is_kept(tmp_path):
    values = [0.1, 0.2, 0.9, 0.3, 0.9]
    task = make_task(values=values)
    state = fit(task, SETTINGS, tmp_path / "c.safetensors", Ranks(), lambda _: None)
    assert (state.best, state.best_step) == (0.9, 6), "of two equals the earlier"
    half = make_task(values=[0.0, 0.0, 1.0], stop_at=6)
    with pytest.raises(Stop):
        fit(half, SETTINGS, tmp_path / "half.safetensors", Ranks(), lambda _: None, save_every=0)
    saved = load_file(tmp_path / "half.safetensors")
    assert torch.equal(task.codebooks["codebooks"], saved["weights/codebooks"])


@pytest.mark.parametrize("clip", [0.5, None])
def test_clipping_takes_all_parameters_together(tmp_path, clip):
    def length(task):
        return float(torch.stack([parameter.grad.norm() for parameter in task.parameters.values()]).norm())

    free, task = make_task(steps=1), make_task(steps=1)
    free.backward(0)
    assert length(free) > 1
    settings = SETTINGS.model_copy(update={"clip": clip})
    fit(task, settings, tmp_path / "c.safetensors", Ranks(), lambda _: None)
    assert length(task) == pytest.approx(clip or length(free), rel=1e-4), "gradients of the one step, as it used them"


def test_not_a_number_is_refused_and_the_checkpoint_kept(tmp_path):
    task = make_task()
    plain = task.backward

    def poisoned(step):
        losses = plain(step)
        if step == 5:
            task.codebooks["codebooks"].grad[0, 0] = torch.nan  # the loss itself is finite
        return losses

    task.backward = poisoned
    with pytest.raises(RepconcError, match="not a number at step 6 of stage-1"):
        fit(task, SETTINGS, tmp_path / "c.safetensors", Ranks(), lambda _: None, save_every=0)
    saved = load_file(tmp_path / "c.safetensors")
    assert all(torch.isfinite(tensor).all() for tensor in saved.values())


def test_a_damaged_checkpoint_is_refused(tmp_path):
    path = tmp_path / "c.safetensors"
    with pytest.raises(Stop):
        fit(make_task(stop_at=5), SETTINGS, path, Ranks(), lambda _: None, save_every=0)
    path.write_bytes(path.read_bytes()[:-9])
    with pytest.raises(RepconcError, match="damaged or of another run"):
        fit(make_task(), SETTINGS, path, Ranks(), lambda _: None)


def test_a_checkpoint_of_another_length_is_refused(tmp_path):
    path = tmp_path / "c.safetensors"
    fit(make_task(), SETTINGS, path, Ranks(), lambda _: None)
    with pytest.raises(RepconcError, match="of another run"):
        fit(make_task(steps=13), SETTINGS, path, Ranks(), lambda _: None)


def test_rates_rise_and_fall():
    rates = [rate_at(step, 20, 0.2) for step in range(20)]
    assert rates[:5] == [0.25, 0.5, 0.75, 1.0, 1.0]
    assert rates[-1] == pytest.approx(1 / 16)
    assert rate_at(0, 1, 0.0) == 1.0
