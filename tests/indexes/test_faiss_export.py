"""faiss answers from an exported index as ours does, and gives the codes back."""

import faiss
import numpy as np
import pytest

from repconc.additive import AdditiveCodec
from repconc.codec import Codec
from repconc.errors import RepconcError
from repconc.indexes import faiss_export
from repconc.indexes.faiss_export import export_faiss, import_faiss
from repconc.indexes.ivf import Index
from repconc.indexes.writing import add, build, remove
from repconc.maps import VectorMap
from tests.indexes.conftest import additive_codecs, batches, codecs


@pytest.fixture(params=["plain", "padded", "rotated", "mapped", "additive"])
def any_index(request, tmp_path) -> Index:
    """Of two segments, with removals."""
    coding, scoring = codecs(dimension=15 if request.param == "padded" else 16)
    if request.param == "rotated":
        turn = np.linalg.qr(np.random.default_rng(0).normal(size=(16, 16)))[0].astype(np.float32)
        coding, scoring = (Codec(codec.codebooks, 16, VectorMap(turn)) for codec in (coding, scoring))
    if request.param == "mapped":
        maps = np.random.default_rng(0).normal(size=(2, 16, 16)).astype(np.float32)
        pairs = zip((coding, scoring), maps, strict=True)
        coding, scoring = (Codec(codec.codebooks, 16, VectorMap(linear, unit=True)) for codec, linear in pairs)
    if request.param == "additive":
        coding, scoring = additive_codecs()
    folder = tmp_path / "index"
    build(folder, batches(range(200)), coding=coding, scoring=scoring, lists=9)
    add(folder, batches(range(200, 260)))
    remove(folder, [f"d{number}" for number in range(0, 260, 9)])
    return Index(folder)


def test_faiss_finds_what_we_find(any_index, tmp_path):
    export_faiss(any_index, tmp_path / "out.faiss")
    read = faiss.read_index(str(tmp_path / "out.faiss"))
    ids = [line.strip('"') for line in (tmp_path / "out.faiss.ids.jsonl").read_text().splitlines()]
    assert isinstance(read, faiss.IndexPreTransform) == (
        any_index.scoring.map is not None or any_index.scoring.padding > 0
    )
    assert sorted(ids) == sorted(hit.id for hit in any_index.search(np.ones(any_index.manifest.dimension), 999)[0])
    queries = np.random.default_rng(1).normal(size=(30, any_index.manifest.dimension)).astype(np.float32)
    faiss.extract_index_ivf(read).nprobe = 4
    scores, numbers = read.search(queries, 7)
    for hits, row, values in zip(any_index.search(queries, 7, probes=4), numbers, scores, strict=True):
        assert np.allclose([hit.score for hit in hits], values, rtol=1e-4, atol=1e-4)
        distinct = [hit.id for hit in hits if sum(abs(hit.score - other.score) < 1e-4 for other in hits) == 1]
        assert set(distinct[:-1]) <= {ids[number] for number in row}


def test_codes_come_back(any_index, tmp_path):
    export_faiss(any_index, tmp_path / "out.faiss")
    if isinstance(any_index.scoring, AdditiveCodec):
        with pytest.raises(RepconcError, match="not an IVFPQ or PQ"):
            import_faiss(tmp_path / "out.faiss", tmp_path / "back")
        return
    back = import_faiss(tmp_path / "out.faiss", tmp_path / "back")
    query = np.random.default_rng(2).normal(size=any_index.manifest.dimension).astype(np.float32)
    one, other = (index.search(query, 999, probes=index.manifest.lists)[0] for index in (any_index, back))
    assert one == other


def test_a_flat_index_can_be_taken(tmp_path):
    vectors = np.random.default_rng(0).normal(size=(600, 8)).astype(np.float32)
    index = faiss.IndexPQ(8, 4, 8, faiss.METRIC_INNER_PRODUCT)
    index.train(vectors)
    index.add(vectors)
    faiss.write_index(index, str(tmp_path / "pq"))
    taken = import_faiss(tmp_path / "pq", tmp_path / "index")
    scores, numbers = index.search(vectors[:5], 3)
    for hits, row, values in zip(taken.search(vectors[:5], 3, probes=999), numbers, scores, strict=True):
        assert [hit.id for hit in hits] == [str(number) for number in row]
        assert np.allclose([hit.score for hit in hits], values, atol=1e-4)


@pytest.mark.parametrize(
    "index",
    [faiss.IndexFlatIP(8), faiss.IndexPQ(8, 4, 8, faiss.METRIC_L2), faiss.IndexPQ(8, 4, 4, faiss.METRIC_INNER_PRODUCT)],
    ids=["flat", "L2", "4 bits"],
)
def test_what_cannot_be_taken(index, tmp_path):
    faiss.write_index(index, str(tmp_path / "file"))
    with pytest.raises(RepconcError, match=r"not an IVFPQ or PQ|whole bytes"):
        import_faiss(tmp_path / "file", tmp_path / "index")
    (tmp_path / "junk").write_bytes(b"no index")
    with pytest.raises(RepconcError, match="faiss cannot read"):
        import_faiss(tmp_path / "junk", tmp_path / "index")


def test_an_export_that_differs_is_not_written(any_index, tmp_path, monkeypatch):
    made, ids = faiss_export.to_faiss(any_index)
    inner = faiss.downcast_index(faiss.extract_index_ivf(made))
    books = inner.rq.codebooks if hasattr(inner, "rq") else inner.pq.centroids
    faiss.copy_array_to_vector(faiss.vector_to_array(books) * 1.1, books)
    monkeypatch.setattr(faiss_export, "to_faiss", lambda index: (made, ids))
    with pytest.raises(RepconcError, match="does not find what ours finds"):
        export_faiss(any_index, tmp_path / "out.faiss")
    assert not list(tmp_path.glob("*out.faiss*"))
