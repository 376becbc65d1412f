"""`index check` counts: files whose checksums are right and whose content is not."""

from pathlib import Path

import numpy as np
import pytest

from repconc.errors import RepconcError
from repconc.indexes.check import check_index
from repconc.indexes.checked import entry_of
from repconc.indexes.manifest import commit, read_manifest
from repconc.indexes.writing import add, remove
from tests.indexes.conftest import batches


def replace(folder: Path, kind: str, content: np.ndarray, segment: int = 0) -> None:
    """Write other content into a file of the index, with a manifest that fits it."""
    manifest = read_manifest(folder)
    files = manifest.segments[segment].files
    path = folder / files[kind].name
    path.write_bytes(content.tobytes())
    files[kind] = entry_of(path)
    commit(folder, manifest)


def content_of(folder: Path, kind: str, dtype: str, segment: int = 0) -> np.ndarray:
    return np.fromfile(sorted(folder.glob(f"*.{kind}"))[segment], dtype)


def test_a_sound_index_is_counted(folder):
    counts = check_index(folder)
    assert counts["documents"] == 300 and counts["files"] >= 10
    assert counts["bytes"] == sum(path.stat().st_size for path in folder.iterdir() if path.name[0].isdigit())


@pytest.mark.parametrize("damage", ["offsets", "numbers", "codes", "removed"])
def test_counts_that_do_not_hold(folder, damage):
    if damage == "offsets":
        offsets = content_of(folder, "offsets", "<i8")
        offsets[3] = offsets[-1] + 1
        replace(folder, "offsets", offsets)
    elif damage == "numbers":
        numbers = content_of(folder, "numbers", "<u4")
        numbers[0] = numbers[1]
        replace(folder, "numbers", numbers)
    elif damage == "codes":
        codes = content_of(folder, "codes", "u1")
        codes[7] = 16  # there are 16 codewords
        replace(folder, "codes", codes)
    else:
        remove(folder, ["d3"])
        replace(folder, "removed", np.zeros(38, np.uint8))
    with pytest.raises(RepconcError, match=r"do not hold|stands in no list|beyond 16 codewords|are removed, not"):
        check_index(folder)


def test_the_same_id_twice(folder):
    add(folder, batches(range(300, 310)))
    first = content_of(folder, "hashes", "<u8")
    second = content_of(folder, "hashes", "<u8", segment=1)
    second[0] = first[0]
    replace(folder, "hashes", second, segment=1)
    with pytest.raises(RepconcError, match="310 documents of different ids"):
        check_index(folder)
