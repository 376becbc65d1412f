"""Trials on a tiny set: one line each, and partial sums whose last is the whole sum."""

import sys

import torch
from safetensors.numpy import load_file

from benchmarks import results, trials
from benchmarks.setting import folder_for
from repconc.losses.clustering import clustering
from repconc.quantization.additive import AdditiveQuantizer
from repconc.quantization.product import ProductQuantizer
from repconc.training.ranks import Ranks
from repconc.training.recipe import make_recipe, paper_weight


def test_each_has_a_line_and_leaves_no_folder(labelled, recipe, kept, monkeypatch):
    names = ("as it is", "beam 1", "twice as many levels of 16 codewords")
    some = (*names, "stage 1: partial sums", "stage 2: twice the epochs")
    monkeypatch.setitem(trials.GROUPS, "settings", {name: trials.TRIALS[name] for name in some})
    monkeypatch.setattr(sys, "argv", ["trials", "--recipe", str(recipe), "--sets", str(labelled), "--sizes", "2"])
    trials.main()
    lines = results.read("trials")
    assert [line["trial"] for line in lines] == list(some)
    assert all(0 <= line[stage] <= 1 for line in lines for stage in ("stage 1", "stage 2", "uncompressed"))
    folders = {path.name for path in folder_for(str(labelled), str(recipe), 0).iterdir()}
    assert folders == {"dense", "trial-warmed-additive-2"}
    warmed = load_file(folder_for(str(labelled), str(recipe), 0) / "trial-warmed-additive-2" / "warmup.safetensors")
    assert len(warmed["codebooks"]) == 2, "codebooks of another shape were warmed up elsewhere"
    trials.main()
    assert results.read("trials") == lines
    assert len(trials.trials_table("settings", "additive").rows) == len(some)


def test_epochs_are_split_between_the_stages(labelled, recipe, kept, monkeypatch):
    arguments = ["--recipe", str(recipe), "--sets", str(labelled), "--sizes", "2"]
    monkeypatch.setattr(sys, "argv", ["trials", *arguments, "--codes", "product", "--trials", "splits"])
    trials.main()
    lines = {line["trial"]: line for line in results.read("trials")}
    assert lines.keys() == trials.SPLITS.keys()
    assert all((line["stage 1"] is None) == name.startswith("without") for name, line in lines.items())
    assert len(trials.trials_table("splits", "product").rows) == len(lines)
    assert not trials.trials_table("settings", "additive").rows
    whole = make_recipe({"stage_one": {"epochs": 5.0}, "stage_two": {"epochs": 3.0}})
    split = trials.SPLITS["a quarter of all epochs in stage 1"](whole)
    assert (split.stage_one.epochs, split.stage_two.epochs) == (2.0, 6.0)


def test_levels_of_half_a_byte_have_as_many_bits_and_the_same_lambda():
    whole = make_recipe({"quantizer": {"bytes": 8, "codes": "additive"}})
    halves = trials.half_bytes(whole)
    assert 4 * halves.quantizer.bytes == 8 * whole.quantizer.bytes and halves.quantizer.codewords == 2**4
    assert halves.stage_one.weight == paper_weight(8) != paper_weight(16)


def test_lengths_are_given_back_to_the_other_structure():
    for quantizer in (AdditiveQuantizer(torch.randn(3, 4, 5), 5, unit=True), ProductQuantizer(torch.randn(3, 4, 2), 6)):
        before = quantizer.unit
        trials.OtherLengths(quantizer, None, 1.0, 1.0, Ranks())
        assert quantizer.unit is not before


def test_partial_sums_are_compared_with_documents():
    torch.manual_seed(0)
    quantizer, documents, codes = (
        AdditiveQuantizer(torch.randn(3, 4, 5), 5),
        torch.randn(6, 5),
        torch.randint(4, (6, 3)),
    )
    loss = trials.PartialSums(quantizer, None, 1.0, 1.0, Ranks())
    decoded = loss.quantized(documents, codes)
    expected = sum(clustering(documents, quantizer.codebooks[range(m), codes[:, :m]].sum(dim=1)) for m in (1, 2, 3)) / 3
    torch.testing.assert_close(loss.clustered(documents, decoded), expected)
