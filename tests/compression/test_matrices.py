"""Every kind of file gives the same rows, a block at a time; what is no matrix of numbers gets a sentence."""

import pickle
import zipfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.numpy import save_file

from repconc.compression.matrices import open_matrix
from repconc.errors import RepconcError


def write(folder: Path, kind: str, array: np.ndarray) -> Path:
    path = folder / f"vectors.{kind.removesuffix('-compressed').removesuffix('-fixed')}"
    if kind == "npy":
        np.save(path, array)
    elif kind == "npz":
        np.savez(path, vectors=array)
    elif kind == "npz-compressed":
        np.savez_compressed(path, vectors=array)
    elif kind == "safetensors":
        save_file({"vectors": array}, path)
    else:
        fixed = pa.FixedSizeListArray.from_arrays(pa.array(array.ravel()), array.shape[1])
        column = (
            fixed if kind.endswith("fixed") else pa.array(array.tolist(), pa.list_(pa.from_numpy_dtype(array.dtype)))
        )
        pq.write_table(pa.table({"number": np.arange(len(array)), "vectors": column}), path)
    return path


KINDS = ["npy", "npz", "npz-compressed", "safetensors", "parquet", "parquet-fixed"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", ["f4", "f8", "f2", "i4"])
def test_every_kind_of_file_gives_the_same_rows(tmp_path, kind, dtype):
    array = (10 * np.random.default_rng(0).normal(size=(37, 5))).astype(dtype)
    matrix = open_matrix(write(tmp_path, kind, array))
    assert matrix.shape == (37, 5)
    blocks = list(matrix.blocks(8))
    assert all(len(block) <= 8 and block.dtype == np.float32 for block in blocks)
    np.testing.assert_array_equal(np.concatenate(blocks), array.astype("f4"))
    numbers = np.array([0, 7, 8, 36])
    np.testing.assert_array_equal(matrix.rows(numbers), array[numbers].astype("f4"))


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 40), st.integers(1, 50), st.data())
def test_rows_are_found_by_number_whatever_the_size_of_a_block(count, size, data):
    array = np.arange(2 * count, dtype="f4").reshape(count, 2)
    matrix = open_matrix(array)
    numbers = np.array(sorted(data.draw(st.sets(st.integers(0, count - 1)))), int)
    np.testing.assert_array_equal(np.concatenate(list(matrix.blocks(size))), array)
    np.testing.assert_array_equal(matrix.rows(numbers), array[numbers])


@pytest.mark.parametrize("kind", KINDS)
def test_a_row_that_is_no_vector_is_named(tmp_path, kind):
    array = np.ones((20, 3), "f4")
    array[13, 1] = np.inf
    with pytest.raises(RepconcError, match=r"Row 13 of .*infinite"):
        list(open_matrix(write(tmp_path, kind, array)).blocks(4))


def test_an_array_of_several_is_named(tmp_path):
    np.savez(tmp_path / "two.npz", first=np.zeros((2, 3)), second=np.ones((4, 3)))
    with pytest.raises(RepconcError, match="first, second"):
        open_matrix(tmp_path / "two.npz")
    assert open_matrix(tmp_path / "two.npz", "second").shape == (4, 3)


@pytest.mark.parametrize("kind", ["npy", "npz", "safetensors", "parquet"])
def test_a_broken_file_gets_a_sentence(tmp_path, kind):
    path = tmp_path / f"broken.{kind}"
    path.write_bytes(b"this is no such file")
    with pytest.raises(RepconcError, match="is no"):
        open_matrix(path)


def test_a_cut_archive_gets_a_sentence(tmp_path):
    with zipfile.ZipFile(tmp_path / "cut.npz", "w") as archive:
        np.save(tmp_path / "whole.npy", np.ones((10, 4), "f4"))
        archive.writestr("a.npy", (tmp_path / "whole.npy").read_bytes()[:-20])
    with pytest.raises(RepconcError, match=r"cut or damaged|rows"):
        list(open_matrix(tmp_path / "cut.npz").blocks(3))


def test_a_pickle_is_never_opened(tmp_path):
    class Bomb:
        def __reduce__(self):
            return Path.touch, (tmp_path / "bang",)

    np.save(tmp_path / "bomb.npy", np.array([[Bomb()]], dtype=object), allow_pickle=True)
    (tmp_path / "bare.npy").write_bytes(pickle.dumps(Bomb()))
    for name in ("bomb.npy", "bare.npy"):
        with pytest.raises(RepconcError):
            open_matrix(tmp_path / name)
    assert not (tmp_path / "bang").exists()


@pytest.mark.parametrize(
    ("array", "sentence"),
    [
        (np.ones(3), "matrix of numbers"),
        (np.ones((2, 3, 4)), "matrix of numbers"),
        (np.array([["a", "b"]]), "matrix of numbers"),
        (np.ones((0, 3)), "empty"),
        ([[1.0, 2.0], [3.0]], "matrix of numbers"),
    ],
)
def test_what_is_no_matrix_gets_a_sentence(array, sentence):
    with pytest.raises(RepconcError, match=sentence):
        open_matrix(array)


def test_vectors_of_different_lengths_get_a_sentence(tmp_path):
    pq.write_table(pa.table({"v": [[1.0, 2.0], [1.0]]}), tmp_path / "ragged.parquet")
    with pytest.raises(RepconcError, match=r"Row 1 of .* not as long"):
        list(open_matrix(tmp_path / "ragged.parquet").blocks())


@pytest.mark.parametrize("fixed", [False, True])
def test_a_gap_in_a_vector_is_named_by_its_row(tmp_path, fixed):
    rows = [[1.0, 2.0] for _ in range(20)]
    rows[13][1] = None
    kind = pa.list_(pa.float32(), 2) if fixed else pa.list_(pa.float32())
    pq.write_table(pa.table({"v": pa.array(rows, kind)}), tmp_path / "gap.parquet")
    with pytest.raises(RepconcError, match=r"Row 13 of .* has a gap"):
        list(open_matrix(tmp_path / "gap.parquet").blocks(4))


def test_damaged_pages_and_columns_of_one_name_get_a_sentence(tmp_path):
    column = pa.array(np.random.default_rng(0).normal(size=(500, 8)).tolist())
    pq.write_table(pa.table({"v": column}), tmp_path / "whole.parquet", compression="snappy")
    content = bytearray((tmp_path / "whole.parquet").read_bytes())
    content[4:60] = b"\xff" * 56
    (tmp_path / "damaged.parquet").write_bytes(content)
    with pytest.raises(RepconcError, match="cut or damaged"):
        list(open_matrix(tmp_path / "damaged.parquet").blocks())
    pq.write_table(pa.Table.from_arrays([column, column], names=["v", "v"]), tmp_path / "twice.parquet")
    with pytest.raises(RepconcError, match="several columns called 'v'"):
        open_matrix(tmp_path / "twice.parquet", "v")


def test_a_header_in_an_archive_that_is_no_python_gets_a_sentence(tmp_path):
    np.save(tmp_path / "whole.npy", np.ones((10, 4), "f4"))
    with zipfile.ZipFile(tmp_path / "odd.npz", "w") as archive:
        archive.writestr("a.npy", (tmp_path / "whole.npy").read_bytes().replace(b"(10, 4)", b"(10, 4("))
    with pytest.raises(RepconcError, match="is no archive of arrays"):
        open_matrix(tmp_path / "odd.npz")
