"""To faiss and back: an `IndexIVFPQ` with our lists, codes and scoring codebooks; additive ones to faiss only.

Documents get the numbers 0, 1, 2, ... there; the ids lie beside it as JSON lines. Only the scoring codebooks fit into
such an index, and of two maps only that of queries, so that adding documents through faiss would code them wrongly.
Classes of lengths do not fit into it.

Sizes: N documents, M blocks of d dimensions, L lists, D dimensions before padding.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from repconc.additive import AdditiveCodec
from repconc.codec import Codec
from repconc.errors import RepconcError, first_line, import_extra
from repconc.files import atomic_path, atomic_write
from repconc.indexes.folder import refuse_inside
from repconc.indexes.ivf import Index
from repconc.indexes.writing import Batches, Show, build, quietly
from repconc.maps import VectorMap
from repconc.records import Document

PROBES, TRIED, TOLERANCE = 10, 50, 1e-4
CODES_AT_A_TIME = 1 << 16


def to_faiss(index: Index) -> tuple[Any, list[str]]:
    """An index of faiss that finds what ours finds, and the ids of its numbers."""
    if index.coding.lengths is not None:
        raise RepconcError(
            "faiss has no place for classes of lengths, which additive codes of vectors of length 1 have; "
            "train or compress with product codes for it."
        )
    faiss = _faiss()
    coarse = faiss.IndexFlatIP(index.scoring.width)
    coarse.add(index.centroids.astype(np.float32))
    ivf = _without_codes(faiss, coarse, index.scoring)
    ids: list[str] = []
    for segment in index.segments:
        living = ~segment.removed()
        for number in range(len(index.centroids)):
            start, stop = segment.offsets[number : number + 2]
            positions = start + np.flatnonzero(living[start:stop])
            if not len(positions):
                continue
            numbers = np.arange(len(ids), len(ids) + len(positions), dtype=np.int64)
            ids += segment.documents.ids_of(segment.numbers.take(positions))
            codes = np.ascontiguousarray(segment.codes_at(positions))
            ivf.invlists.add_entries(number, len(codes), faiss.swig_ptr(numbers), faiss.swig_ptr(codes))
    ivf.ntotal, ivf.nprobe, ivf.own_fields = len(ids), index.manifest.probes, True
    coarse.this.disown()
    return _behind_transform(ivf, index.scoring), ids


def _without_codes(faiss: Any, coarse: Any, codec: Codec) -> Any:
    """An inverted file with the lists of `coarse` and our codebooks."""
    M, K, _ = codec.codebooks.shape
    sizes = coarse, codec.width, coarse.ntotal, M, 8, faiss.METRIC_INNER_PRODUCT
    if isinstance(codec, AdditiveCodec):
        ivf = faiss.IndexIVFResidualQuantizer(*sizes, faiss.AdditiveQuantizer.ST_LUT_nonorm)
        ivf.rq.is_trained, books = True, ivf.rq.codebooks
    else:
        ivf = faiss.IndexIVFPQ(*sizes)
        books = ivf.pq.centroids
    ivf.by_residual, ivf.is_trained = False, True
    padded = np.pad(codec.floats, ((0, 0), (0, 256 - K), (0, 0)))
    faiss.copy_array_to_vector(padded.reshape(-1), books)
    return ivf


def export_faiss(index: Index, path: Path) -> None:
    """Write it, read it back, compare its answers with ours; only then it gets its name."""
    faiss = _faiss()
    refuse_inside(index.folder, path)
    made, ids = to_faiss(index)
    if not ids:
        raise RepconcError(f"{index.folder} holds no documents to export.")
    with atomic_path(path) as partial:
        faiss.write_index(made, str(partial))
        _compare(index, faiss.read_index(str(partial)), ids)
        path.unlink(missing_ok=True)  # never an old index beside new ids
        with atomic_write(_ids_beside(path), "w") as file:
            file.writelines(json.dumps(id) + "\n" for id in ids)


def import_faiss(path: Path, output: Path, *, show: Show = quietly) -> Index:
    """An index of ours from the codes of an IndexIVFPQ or IndexPQ over inner products.

    Only for files that you trust: the reader of faiss is not hardened against others.
    """
    faiss = _faiss()
    try:
        loaded = faiss.read_index(str(path))
    except RuntimeError as error:
        raise RepconcError(f"faiss cannot read {path}: {first_line(error)}") from error
    turn, inner = None, loaded
    if isinstance(inner, faiss.IndexPreTransform):
        turn, inner = _map_of(faiss, inner), faiss.downcast_index(inner.index)
    if not isinstance(inner, faiss.IndexIVFPQ | faiss.IndexPQ) or inner.metric_type != faiss.METRIC_INNER_PRODUCT:
        raise RepconcError(f"{path} holds a {type(inner).__name__}, not an IVFPQ or PQ index over inner products.")
    if inner.pq.nbits != 8 or (isinstance(inner, faiss.IndexIVFPQ) and inner.by_residual):
        raise RepconcError(f"{path} has codes of residuals or of {inner.pq.nbits} bits; only whole bytes can be taken.")
    ids = _read_ids(path)
    if ids is not None and len(ids) != inner.ntotal:
        raise RepconcError(f"{path} holds {inner.ntotal} codes and there are {len(ids)} ids beside it.")
    books = faiss.vector_to_array(inner.pq.centroids).reshape(inner.pq.M, 256, -1)
    codec = Codec(np.ascontiguousarray(books), loaded.d, turn)
    return build(output, _codes_of(faiss, inner, ids), coding=codec, scoring=codec, show=show)


def _behind_transform(ivf: Any, codec: Codec) -> Any:
    """Transforms in front only where there is a map, or zeros to put behind a vector."""
    if codec.map is None and not codec.padding:
        return ivf
    if codec.map is not None and codec.map.inner is not None:
        raise RepconcError("faiss has no place for a map with a hidden layer; compress without --hidden to export.")
    faiss = _faiss()
    turn = np.eye(codec.dimension, dtype=np.float32) if codec.map is None else codec.map.linear
    matrix = np.pad(turn.T, ((0, codec.padding), (0, 0)))  # [M * d, D]
    linear = faiss.LinearTransform(codec.dimension, len(matrix), False)
    faiss.copy_array_to_vector(np.ascontiguousarray(matrix).reshape(-1), linear.A)
    linear.is_trained = True
    chain = [linear]
    if codec.map is not None and codec.map.unit:
        chain = [faiss.NormalizationTransform(codec.dimension), linear, faiss.NormalizationTransform(len(matrix))]
    whole = faiss.IndexPreTransform(ivf)
    for transform in reversed(chain):
        whole.prepend_transform(transform)
        transform.this.disown()
    whole.own_fields = True
    ivf.this.disown()
    return whole


def _compare(index: Index, read: Any, ids: list[str]) -> None:
    faiss = _faiss()
    inner = faiss.downcast_index(read.index) if isinstance(read, faiss.IndexPreTransform) else read
    kept = faiss.extract_index_ivf(inner).nprobe
    faiss.extract_index_ivf(inner).nprobe = index.manifest.lists
    queries = np.random.default_rng(0).normal(size=(TRIED, index.manifest.dimension)).astype(np.float32)
    scores, numbers = read.search(queries, min(PROBES, len(ids)))
    longest = float(np.sqrt(2 * index.scoring.half_norms.max(axis=1).sum()))  # about as long as decoded vectors are
    sizes = longest * np.linalg.norm(index.scoring.transform(queries), axis=1)
    for hits, row, values, size in zip(
        index.search(queries, PROBES, probes=index.manifest.lists), numbers, scores, sizes, strict=True
    ):
        ours = np.array([hit.score for hit in hits])
        # Where scores are well apart, the documents must be the same.
        apart = np.diff(ours, prepend=np.inf, append=-np.inf) < -TOLERANCE * size
        sure = [place for place in range(len(hits) - 1) if apart[place] and apart[place + 1]]
        same = all(hits[place].id == ids[row[place]] for place in sure)
        if not same or not np.allclose(ours, values, rtol=0, atol=TOLERANCE * size) or -1 in row:
            raise RepconcError("The index that faiss wrote does not find what ours finds; nothing was exported.")
    faiss.extract_index_ivf(inner).nprobe = kept


def _map_of(faiss: Any, index: Any) -> VectorMap:
    """A linear transform, which may put zeros behind what it made, alone or between two that scale to length 1."""
    chain = [faiss.downcast_VectorTransform(index.chain.at(place)) for place in range(index.chain.size())]
    unit = len(chain) == 3 and all(isinstance(chain[end], faiss.NormalizationTransform) for end in (0, 2))
    linear = chain[1] if unit else chain[0]
    if len(chain) == (3 if unit else 1) and isinstance(linear, faiss.LinearTransform) and not linear.have_bias:
        matrix = faiss.vector_to_array(linear.A).reshape(linear.d_out, linear.d_in)
        if len(matrix) >= linear.d_in and not matrix[linear.d_in :].any():
            return VectorMap(np.ascontiguousarray(matrix[: linear.d_in].T), unit=unit)
    raise RepconcError("The transform before the codes is not a linear one of all dimensions; only that can be taken.")


def _codes_of(faiss: Any, index: Any, ids: list[str] | None) -> Batches:
    """Documents without text, in the order of the lists."""
    for numbers, codes in _parts(faiss, index):
        if ids is not None and (numbers.min() < 0 or numbers.max() >= len(ids)):
            raise RepconcError(f"The index has the number {numbers.max()} and there are {len(ids)} ids beside it.")
        names = map(str, numbers.tolist()) if ids is None else (ids[number] for number in numbers.tolist())
        yield [Document(name, "") for name in names], codes


def _parts(faiss: Any, index: Any) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    M = index.pq.M
    if isinstance(index, faiss.IndexPQ):
        codes = faiss.vector_to_array(index.codes).reshape(-1, M)
        for start in range(0, len(codes), CODES_AT_A_TIME):
            part = codes[start : start + CODES_AT_A_TIME]
            yield np.arange(start, start + len(part)), part
        return
    for number in range(index.nlist):
        size = index.invlists.list_size(number)
        if size:
            ids = faiss.rev_swig_ptr(index.invlists.get_ids(number), size).copy()
            yield ids, faiss.rev_swig_ptr(index.invlists.get_codes(number), size * M).reshape(-1, M).copy()


def _read_ids(path: Path) -> list[str] | None:
    beside = _ids_beside(path)
    if not beside.exists():
        return None
    try:
        ids = [json.loads(line) for line in beside.read_text(encoding="utf-8").splitlines()]
    except ValueError as error:
        raise RepconcError(f"{beside} does not hold one JSON string a line: {first_line(error)}") from error
    if not all(isinstance(id, str) and id for id in ids):
        raise RepconcError(f"{beside} holds something else than ids.")
    return ids


def _ids_beside(path: Path) -> Path:
    return path.with_name(f"{path.name}.ids.jsonl")


def _faiss() -> Any:
    return import_extra("faiss", extra="faiss")
