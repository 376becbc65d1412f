"""Encoding to disk: flat, in parts, and the same bytes whatever happened on the way."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from repconc import Encoder, Vectors, encode_corpus, load_dataset
from repconc.errors import RepconcError
from repconc.lines import InputError
from repconc.models import encoding
from tests.conftest import text


@pytest.fixture
def corpus(beir):
    documents = [{"_id": f"d{i}", "title": "", "text": text(i) + f" {text(i // 3)}"} for i in range(300)]
    return load_dataset(beir(documents=documents))


@pytest.fixture
def encoder(tiny_bert):
    return Encoder(str(tiny_bert))


def content(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir() if not path.name.startswith(".")}


def test_vectors_and_ids_come_back_in_the_order_of_the_corpus(corpus, encoder, tmp_path):
    seen = []
    vectors = encode_corpus(
        encoder, corpus, tmp_path / "v", shard_size=64, progress=lambda done, total: seen.append((done, total))
    )
    assert (len(vectors), vectors.dimension, vectors.nbytes) == (300, 32, 300 * 32 * 4)
    assert vectors.ids == [document.id for document in corpus.documents]
    whole = np.concatenate(list(vectors.blocks()))
    expected = encoder.embed_documents([document.full_text for document in corpus.documents])
    np.testing.assert_allclose(whole, expected, atol=1e-6)
    assert seen == [(0, 300), (64, 300), (128, 300), (192, 300), (256, 300), (300, 300)]


def test_progress_moves_inside_a_shard(corpus, encoder, tmp_path):
    seen = []
    encode_corpus(encoder, corpus, tmp_path / "v", batch_size=4, progress=lambda done, total: seen.append(done))
    assert seen == [*range(0, 300, 32), 300]


def test_the_encoder_may_be_named_otherwise_but_not_batched_otherwise(corpus, tiny_bert, tmp_path, monkeypatch):
    encode_corpus(Encoder(str(tiny_bert)), corpus, tmp_path / "v")
    monkeypatch.chdir(tiny_bert.parent)
    encode_corpus(Encoder("tiny"), corpus, tmp_path / "v")
    with pytest.raises(RepconcError, match="begun with another batch_size"):
        encode_corpus(Encoder("tiny"), corpus, tmp_path / "v", batch_size=3)


def test_parts_on_several_machines_give_the_same_bytes_as_one(corpus, encoder, tmp_path):
    encode_corpus(encoder, corpus, tmp_path / "one", shard_size=64)
    for part in (2, 0):
        assert encode_corpus(encoder, corpus, tmp_path / "three", part=(part, 3), shard_size=64) is None
    with pytest.raises(RepconcError, match="holds unfinished vectors"):
        Vectors(tmp_path / "three")
    assert len(encode_corpus(encoder, corpus, tmp_path / "three", part=(1, 3), shard_size=64)) == 300
    assert content(tmp_path / "one") == content(tmp_path / "three")


# A stand-in without torch, so that a process starts at once; the work on disk, and the kill, are real.
SLOW_ENCODE = """
import hashlib, sys, time
import numpy
from repconc.config import EncoderSettings
from repconc.data.load import load_dataset
from repconc.models.encoding import encode_corpus

class Encoder:
    dimension, settings = 8, EncoderSettings()
    def fingerprint(self):
        return "stand-in"
    def embed_documents(self, texts, batch_size):
        time.sleep(0.03)
        print("shard", flush=True)
        rows = [numpy.frombuffer(hashlib.sha256(text.encode()).digest(), "int32") for text in texts]
        return numpy.array(rows).astype("float32")

encode_corpus(Encoder(), load_dataset(sys.argv[1]), sys.argv[2], shard_size=6)
"""


def test_killed_at_random_points_it_resumes_and_ends_with_the_same_bytes(corpus, tmp_path):
    """A real kill -9 of a real process, six times, each at another point of the work."""
    command = [sys.executable, "-c", SLOW_ENCODE, str(corpus.source.folder)]
    killed = tmp_path / "killed"
    subprocess.run([*command, str(tmp_path / "whole")], check=True, stdout=subprocess.DEVNULL)
    times: dict[str, int] = {}
    generator = np.random.default_rng(0)
    for shards in (1, 5, 1, 4, 1, 3):
        process = subprocess.Popen([*command, str(killed)], stdout=subprocess.PIPE, text=True)
        for _ in range(shards):
            process.stdout.readline()
        time.sleep(generator.uniform(0, 0.04))
        os.kill(process.pid, signal.SIGKILL)
        assert process.wait() == -signal.SIGKILL
        process.stdout.close()
        entries = [path.stem for path in killed.glob("shard-*.json") if ".ids" not in path.name]
        finished = {name: (killed / f"{name}.npy").stat().st_mtime_ns for name in entries}
        assert times.items() <= finished.items(), "a finished shard was written again"
        times = finished
        with pytest.raises(RepconcError, match="unfinished"):
            Vectors(killed)
    assert 5 <= len(times) < 50
    printed = subprocess.run([*command, str(killed)], check=True, capture_output=True, text=True).stdout
    assert printed.count("shard") == 50 - len(times), "what was finished is not computed again"
    assert content(tmp_path / "whole") == content(killed)
    assert not list(killed.glob(".*.partial")), "what the killed processes left behind is gone"


def test_a_kill_before_the_plan_was_written_does_not_block_the_folder(corpus, encoder, tmp_path):
    (tmp_path / "v").mkdir()
    (tmp_path / "v" / ".plan.json.1234.partial").write_text("{")
    assert len(encode_corpus(encoder, corpus, tmp_path / "v")) == 300


def test_parts_that_start_at_the_same_moment_agree(corpus, tmp_path):
    command = [sys.executable, "-c", SLOW_ENCODE.replace("shard_size=6", "shard_size=6, part=(int(sys.argv[3]), 4)")]
    arguments = [str(corpus.source.folder), str(tmp_path / "v")]
    processes = [subprocess.Popen([*command, *arguments, str(part)], stdout=subprocess.DEVNULL) for part in range(4)]
    assert [process.wait() for process in processes] == [0] * 4
    assert len(Vectors(tmp_path / "v")) == 300


def test_what_is_finished_is_not_encoded_again(corpus, encoder, tmp_path, monkeypatch):
    encode_corpus(encoder, corpus, tmp_path / "v", shard_size=64)
    monkeypatch.setattr(Encoder, "embed_documents", lambda *_: pytest.fail("encoded again"))
    assert len(encode_corpus(encoder, corpus, tmp_path / "v", shard_size=64)) == 300


@pytest.mark.parametrize("damage", ["flip", "cut", "remove"])
@pytest.mark.parametrize("file", ["shard-00001.npy", "shard-00001.ids.json", "shard-00001.json"])
def test_a_damaged_shard_is_found_and_made_again(corpus, encoder, tmp_path, file, damage):
    vectors = encode_corpus(encoder, corpus, tmp_path / "v", shard_size=64)
    before = content(tmp_path / "v")
    path = tmp_path / "v" / file
    raw = bytearray(path.read_bytes())
    if damage == "remove":
        path.unlink()
    else:
        raw[len(raw) // 2] ^= 64
        path.write_bytes(raw if damage == "flip" else raw[:-7])
    if file != "shard-00001.json":  # the manifest has its content too
        with pytest.raises(RepconcError, match="altered or cut"):
            vectors.verify()
    encode_corpus(encoder, corpus, tmp_path / "v", shard_size=64)
    assert content(tmp_path / "v") == before


@pytest.mark.parametrize("change", ["fewer", "twice", "swapped", "outside"])
def test_a_manifest_that_does_not_fit_its_plan_is_refused(corpus, encoder, tmp_path, change):
    encode_corpus(encoder, corpus, tmp_path / "v", shard_size=64)
    path = tmp_path / "v" / "manifest.json"
    manifest = json.loads(path.read_text())
    shards = manifest["shards"]
    if change == "fewer":
        shards.pop()
    elif change == "twice":
        shards[1] = shards[0]
    elif change == "swapped":
        shards[0], shards[1] = shards[1], shards[0]
    else:
        shards[0]["name"] = "../v/shard-00000"
    path.write_text(json.dumps(manifest))
    with pytest.raises(RepconcError, match="does not list the shards"):
        Vectors(tmp_path / "v")


def test_a_shard_entry_that_is_not_of_the_plan_is_made_again(corpus, encoder, tmp_path):
    encode_corpus(encoder, corpus, tmp_path / "v", shard_size=64)
    before = content(tmp_path / "v")
    (tmp_path / "v" / "shard-00001.json").write_bytes(before["shard-00000.json"])
    encode_corpus(encoder, corpus, tmp_path / "v", shard_size=64)
    assert content(tmp_path / "v") == before


def test_a_corpus_that_changes_while_it_is_encoded_is_noticed(corpus, encoder, tmp_path, monkeypatch):
    path = corpus.source.folder / "corpus.jsonl"
    original = path.read_bytes()
    real = encoding._agree_on_plan
    monkeypatch.setattr(
        encoding, "_agree_on_plan", lambda *plan: (real(*plan), path.write_bytes(original.replace(b"king", b"duke")))
    )
    with pytest.raises(RepconcError, match="changed while it was being encoded"):
        encode_corpus(encoder, corpus, tmp_path / "v", shard_size=64)
    monkeypatch.undo()
    path.write_bytes(original)
    vectors = encode_corpus(encoder, corpus, tmp_path / "v", shard_size=64)
    expected = encoder.embed_documents([document.full_text for document in corpus.documents])
    np.testing.assert_allclose(np.concatenate(list(vectors.blocks())), expected, atol=1e-6)


def test_another_corpus_or_encoder_is_not_mixed_in(corpus, beir, encoder, other_dimension, tmp_path):
    encode_corpus(encoder, corpus, tmp_path / "v", shard_size=64)
    before = content(tmp_path / "v")
    with pytest.raises(RepconcError, match=r"begun with another .*corpus_sha256"):
        encode_corpus(encoder, load_dataset(beir(name="other")), tmp_path / "v", shard_size=64)
    with pytest.raises(RepconcError, match=r"begun with another .*fingerprint"):
        encode_corpus(Encoder(str(other_dimension)), corpus, tmp_path / "v", shard_size=64)
    assert content(tmp_path / "v") == before


def test_a_folder_with_other_things_in_it_is_left_alone(corpus, encoder, tmp_path):
    (tmp_path / "v").mkdir()
    (tmp_path / "v" / "thesis.txt").write_text("mine")
    with pytest.raises(RepconcError, match="is not empty"):
        encode_corpus(encoder, corpus, tmp_path / "v")
    assert [path.name for path in (tmp_path / "v").iterdir()] == ["thesis.txt"]


def test_a_second_process_on_the_same_part_is_told_so(corpus, tmp_path):
    slower = SLOW_ENCODE.replace("sleep(0.03)", "sleep(0.5)")
    command = [sys.executable, "-c", slower, str(corpus.source.folder), str(tmp_path / "v")]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    process.stdout.readline()
    second = subprocess.run(command, capture_output=True, text=True, check=False)
    process.kill()
    process.communicate()
    assert "Another process is encoding this part" in second.stderr


def test_a_wrong_corpus_is_refused_before_the_first_vector(beir, encoder, tmp_path):
    with pytest.raises(InputError, match=r"corpus\.jsonl:2"):
        encode_corpus(encoder, load_dataset(beir(documents=['{"_id": "a", "text": "x"}', "{"])), tmp_path / "v")
    assert not (tmp_path / "v").exists()


def test_vectors_that_are_not_finite_are_refused(corpus, encoder, tmp_path, monkeypatch):
    monkeypatch.setattr(
        Encoder, "embed_documents", lambda self, texts, _: np.full((len(texts), 32), np.nan, np.float32)
    )
    with pytest.raises(RepconcError, match="not finite for document 'd0'"):
        encode_corpus(encoder, corpus, tmp_path / "v")


def test_files_of_a_newer_format_or_altered_manifests_are_refused(corpus, encoder, tmp_path):
    encode_corpus(encoder, corpus, tmp_path / "v")
    path = tmp_path / "v" / "manifest.json"
    manifest = json.loads(path.read_text())
    manifest |= {"format": 99, "unheard-of": True}
    path.write_text(json.dumps(manifest))
    with pytest.raises(RepconcError, match="format 99, newer than"):
        Vectors(tmp_path / "v")
    path.write_text("{}")
    with pytest.raises(RepconcError, match="is not as this program writes it"):
        Vectors(tmp_path / "v")
    with pytest.raises(RepconcError, match="holds no vectors"):
        Vectors(tmp_path)


MEASURED_ENCODE = """
import pathlib, re, sys
from repconc import Encoder, encode_corpus, load_dataset
model, dataset, folder = sys.argv[1:]
encode_corpus(Encoder(model), load_dataset(dataset), folder, shard_size=1024, batch_size=256)
print(re.search(r"VmHWM:\\s+(\\d+)", pathlib.Path("/proc/self/status").read_text())[1])
"""


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_memory_stays_flat_whatever_the_corpus(beir, static_folder, tmp_path):
    """Twenty times the documents cost no more than their hashes: 8 bytes each, and some noise."""
    peaks = {}
    for count in (10_000, 200_000):
        documents = [{"_id": f"d{i}", "title": "", "text": text(i) + " castle" * 30} for i in range(count)]
        folder = beir(documents=documents, qrels={}, name=f"set{count}")
        command = [sys.executable, "-c", MEASURED_ENCODE, str(static_folder), str(folder), str(tmp_path / f"v{count}")]
        peaks[count] = int(subprocess.check_output(command, text=True).split()[-1])  # kilobytes
    assert peaks[200_000] - peaks[10_000] < 40_000, peaks
