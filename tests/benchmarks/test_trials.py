"""Trials on a tiny set: one line each, and partial sums whose last is the whole sum."""

import sys

import torch

from benchmarks import results, trials
from benchmarks.setting import folder_for
from repconc.losses.clustering import clustering
from repconc.quantization.additive import AdditiveQuantizer
from repconc.training.ranks import Ranks


def test_each_has_a_line_and_leaves_no_folder(labelled, recipe, kept, monkeypatch):
    some = ("as it is", "beam 1", "stage 1: partial sums", "stage 2: twice the epochs")
    monkeypatch.setattr(trials, "TRIALS", {name: trials.TRIALS[name] for name in some})
    monkeypatch.setattr(sys, "argv", ["trials", "--recipe", str(recipe), "--sets", str(labelled), "--sizes", "2"])
    trials.main()
    lines = results.read("trials")
    assert [line["trial"] for line in lines] == list(some)
    assert all(0 <= line[stage] <= 1 for line in lines for stage in ("stage 1", "stage 2", "uncompressed"))
    folders = {path.name for path in folder_for(str(labelled), str(recipe), 0).iterdir()}
    assert folders == {"dense", "trial-warmed-2"}
    trials.main()
    assert results.read("trials") == lines
    assert len(trials.trials_table().rows) == len(some)


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
