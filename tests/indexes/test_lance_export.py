"""Lance answers from an exported index as ours does."""

from dataclasses import replace

import numpy as np
import pytest

from repconc.errors import RepconcError
from repconc.indexes.ivf import Index
from repconc.indexes.lance_export import export_lance
from repconc.indexes.writing import build, remove
from repconc.maps import VectorMap
from tests.indexes.conftest import additive_codecs, batches, codecs


def test_lance_finds_what_we_find(tmp_path):
    lance = pytest.importorskip("lance")
    coding, scoring = codecs(codewords=256, dimension=16)
    built = build(tmp_path / "index", batches(range(400)), coding=coding, scoring=scoring, lists=5)
    remove(built.folder, ["d7", "d8"])
    index = Index(built.folder)
    export_lance(index, tmp_path / "out.lance")
    dataset = lance.dataset(str(tmp_path / "out.lance"))
    assert dataset.count_rows() == 398
    for query in np.random.default_rng(0).normal(size=(5, 16)).astype(np.float32):
        wanted = {"column": "vector", "q": query, "k": 10, "nprobes": 5}
        rows = dataset.to_table(nearest=wanted, columns=["id", "text", "metadata"]).to_pylist()
        ours = index.search(query, 10, probes=5, documents=True)[0]
        assert len({row["id"] for row in rows} & {hit.id for hit in ours}) >= 9, "Lance rounds tables to bytes"
        known = {hit.id: hit.document for hit in ours}
        assert all(row["text"] == known[row["id"]].text for row in rows if row["id"] in known)
    with pytest.raises(RepconcError, match="there already"):
        export_lance(index, tmp_path / "out.lance")


def test_what_lance_cannot_hold_is_said_before_it_is_needed(tmp_path):
    turned = VectorMap(np.eye(15, dtype=np.float32))
    mapped = [replace(codec, map=turned) for codec in codecs()]
    whole = [replace(codec, map=turned) for codec in additive_codecs()]
    for name, (coding, scoring), sentence in (
        ("mapped", mapped, "no place for a rotation"),
        ("whole", whole, "no additive codes"),
    ):
        index = build(tmp_path / name, batches(range(60)), coding=coding, scoring=scoring, lists=2)
        with pytest.raises(RepconcError, match=sentence):
            export_lance(index, tmp_path / "out.lance")
        assert not (tmp_path / "out.lance").exists()
