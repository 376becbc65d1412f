"""New versions without a dropped request, a clean end, and no acknowledged write lost to a kill."""

import http.client
import random
import shutil
import signal
import socket
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from repconc.files import locked
from repconc.indexes.ivf import Index
from repconc.indexes.manifest import MANIFEST
from repconc.indexes.writing import add, compact
from repconc.search import Searcher
from tests.indexes.conftest import batches
from tests.serving.conftest import text_documents, text_index, text_vectors, vector_index, vector_of
from tests.serving.running import TOKEN, Running, running, start, wait_for
from tests.training.conftest import tiny_static  # noqa: F401 (a fixture)


class Asking:
    """Threads that search all the time; anything but 200 is remembered."""

    def __init__(self, server: Running, threads: int = 4) -> None:
        self.versions: set[int] = set()
        self.bad: list[object] = []
        self._server, self._over = server, threading.Event()
        self._threads = [threading.Thread(target=self._run) for _ in range(threads)]

    def __enter__(self) -> "Asking":
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        for thread in self._threads:
            thread.join()

    def _run(self) -> None:
        while not self._over.is_set():
            try:
                reply = self._server.ask("/v1/search", {"vector": vector_of(1), "text": True})
                self.versions.add(reply.json["version"])
                if reply.status != 200 or not reply.json["results"][0]["hits"]:
                    self.bad.append(reply)
            except Exception as error:
                self.bad.append(error)


def documents_of(server: Running) -> int:
    return server.ask("/v1/index").json["documents"]


def test_new_versions_come_without_a_dropped_request(tmp_path):
    folder = vector_index(tmp_path / "index", range(300))
    other = vector_index(tmp_path / "other", range(500, 620))
    with running(folder, folder=tmp_path) as server, Asking(server) as asking:
        add(folder, batches(range(300, 340)))  # another process writes
        wait_for(lambda: documents_of(server) == 340)
        compact(folder)
        wait_for(lambda: server.ask("/v1/index").json["segments"] == 1)
        folder.rename(tmp_path / "old")  # another index takes its place
        other.rename(folder)
        shutil.rmtree(tmp_path / "old")
        wait_for(lambda: documents_of(server) == 120)
        (folder / "index.json").write_text("not an index")  # nonsense does not
        time.sleep(1.2)
        assert documents_of(server) == 120
        assert "cannot be opened" in server.log.read_text()
    assert asking.bad == [] and len(asking.versions) >= 2


def test_a_link_can_be_turned_to_a_new_version(tmp_path):
    vector_index(tmp_path / "one", range(100))
    vector_index(tmp_path / "two", range(100, 250))
    (tmp_path / "current").symlink_to("one")
    with running(tmp_path / "current", folder=tmp_path) as server, Asking(server, 2) as asking:
        assert documents_of(server) == 100
        (tmp_path / "next").symlink_to("two")
        (tmp_path / "next").rename(tmp_path / "current")
        wait_for(lambda: documents_of(server) == 150)
    assert asking.bad == []


def test_a_link_keeps_its_own_name(tmp_path):
    """Whoever asks for an index by name must find it also after the link turned."""
    for number, name in enumerate(("one", "two")):
        vector_index(tmp_path / name, range(100 * (number + 1)))
    (tmp_path / "current").symlink_to("one")
    with running(f"{tmp_path / 'current'}/", folder=tmp_path) as server:
        assert server.ask("/v1/indexes").json == {"indexes": ["current"]}
        (tmp_path / "next").symlink_to("two")
        (tmp_path / "next").rename(tmp_path / "current")
        wait_for(lambda: documents_of(server) == 200)
        assert server.ask("/v1/search?index=current", {"vector": vector_of(1)}).json["index"] == "current"
        assert server.ask("/v1/index?index=one").code == "unknown_index"


def test_an_index_that_is_swapped_takes_its_vectors_along(tmp_path, tiny_static):  # noqa: F811
    """Both under links: of another model with its vectors, and of another model without them."""
    documents = text_documents()
    other = tmp_path / "encoder"
    shutil.copytree(tiny_static, other)
    change_weights(other)
    for release, encoder in (("one", tiny_static), ("two", other)):
        text_index(tmp_path / release / "index", encoder, documents)
        text_vectors(tmp_path / release, encoder, documents)
    current = tmp_path / "current"
    current.symlink_to("one")
    with running(current / "index", "--vectors", current / "vectors", folder=tmp_path) as server:
        question = {"query": "river of gold", "k": 5, "exact": True}
        exact = {name: Searcher.open(tmp_path / name / "vectors") for name in ("one", "two")}
        first = server.ask("/v1/search", question)
        turn(current, "two")
        wait_for(lambda: server.ask("/v1/search", question).json["results"] != first.json["results"])
        found = server.ask("/v1/search", question).json["results"][0]["hits"]
        assert [hit["id"] for hit in found] == [hit.id for hit in exact["two"].search(["river of gold"], 5)[0]]
        shutil.rmtree(tmp_path / "one" / "vectors")
        shutil.copytree(tmp_path / "two" / "vectors", tmp_path / "one" / "vectors")
        turn(current, "one")  # whose vectors are not its own any more
        wait_for(lambda: not server.ask("/v1/index").json["exact"])
        assert server.ask("/v1/search", question).code == "no_vectors"
        assert server.ask("/v1/search", question | {"exact": False}).status == 200
        assert "were not made by the model" in server.log.read_text()


def turn(link: Path, target: str) -> None:
    link.with_name("next").symlink_to(target)
    link.with_name("next").rename(link)


def change_weights(encoder: Path) -> None:
    """Another model of the same shape."""
    (path,) = encoder.rglob("model.safetensors")
    weights = load_file(path)
    save_file({name: np.ascontiguousarray(value[::-1]) for name, value in weights.items()}, path)


def test_a_version_that_could_not_be_opened_is_tried_again(tmp_path):
    """Copied in the wrong order: the manifest is there before its files."""
    folder = vector_index(tmp_path / "index", range(100))
    other = vector_index(tmp_path / "other", range(100, 250))
    with running(folder, folder=tmp_path) as server:
        for path in folder.iterdir():
            path.unlink()
        shutil.copy(other / "index.json", folder)
        wait_for(lambda: "cannot be opened" in server.log.read_text())
        assert documents_of(server) == 100, "the old version goes on"
        for path in other.iterdir():
            if path.name != "index.json":
                shutil.copy(path, folder)
        wait_for(lambda: documents_of(server) == 150)
        assert server.log.read_text().count("cannot be opened") == 1


def test_a_clean_end_finishes_what_it_has(tmp_path):
    folder = vector_index(tmp_path / "index")
    with running(folder, folder=tmp_path) as server:
        host, port = server.address.removeprefix("http://").split(":")
        body = b'{"documents": [{"id": "last", "text": "x", "vector": %s}]}' % str(vector_of(1)).encode()
        head = f"POST /v1/documents HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {TOKEN}\r\n"
        with (
            socket.create_connection((host, int(port)), 20) as half,
            socket.create_connection((host, int(port))) as idle,
        ):
            half.sendall(f"{head}Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n".encode())
            time.sleep(0.3)
            server.process.send_signal(signal.SIGTERM)
            time.sleep(0.5)
            with pytest.raises(ConnectionRefusedError):
                socket.create_connection((host, int(port)), 2)
            assert idle.recv(10) == b"", "who asks nothing is let go"
            half.sendall(body)
            assert b"200 OK" in half.recv(4096).splitlines()[0]
        assert server.process.wait(20) == 0
        assert "Traceback" not in server.log.read_text()
    assert "last" in Index(folder)


class Writer:
    """Writes and removes documents, and knows what was acknowledged; what was cut off may be there or not."""

    def __init__(self, seed: int) -> None:
        self._chance = random.Random(seed)
        self._prefix = f"w{seed}-"
        self.state: dict[str, int | None] = {}
        self.open: tuple[str, int | None] | None = None
        self.acknowledged = 0

    def step(self, server: Running) -> None:
        id = f"{self._prefix}{self._chance.randrange(12)}"
        version = (
            None if self.state.get(id) is not None and self._chance.random() < 0.3 else self._chance.randrange(10**6)
        )
        self.open = id, version
        if version is None:
            reply = server.ask(f"/v1/documents/{id}", method="DELETE", token=TOKEN)
        else:
            row = {"id": id, "text": f"version {version}", "vector": vector_of(version)}
            reply = server.ask("/v1/documents", {"documents": [row]}, token=TOKEN)
        if reply.status == 200:
            self.state[id] = version
            self.acknowledged += 1
        else:
            assert reply.status == 429, reply.body
        self.open = None

    def settle(self, index: Index) -> None:
        """After a kill: the open write happened or not; all others are as acknowledged."""
        if self.open is not None:
            id, version = self.open
            found = index.get(id)
            text = None if found is None else found.text
            before = self.state.get(id)
            assert text in {None if one is None else f"version {one}" for one in (before, version)}
            self.state[id] = version if text == (None if version is None else f"version {version}") else before
            self.open = None
        for id, version in self.state.items():
            found = index.get(id)
            assert (None if found is None else found.text) == (None if version is None else f"version {version}"), id


def drive_kills(folder: Path, index: Path, kills: int) -> int:
    writers = [Writer(seed) for seed in range(4)]
    chance, port = random.Random(kills), 0
    for _ in range(kills):
        server = start(index, folder=folder, port=port)
        port = int(server.address.rpartition(":")[2])
        over = threading.Event()

        def write(writer: Writer, server: Running = server, over: threading.Event = over) -> None:
            while not over.is_set():
                try:
                    writer.step(server)
                except (OSError, http.client.HTTPException):
                    return

        threads = [threading.Thread(target=write, args=(writer,)) for writer in writers]
        for thread in threads:
            thread.start()
        time.sleep(chance.uniform(0.3, 1.5))
        server.process.kill()
        server.process.wait()
        over.set()
        for thread in threads:
            thread.join()
        with locked(index / MANIFEST):  # an orphaned commit may be under way
            opened = Index(index)
        opened.verify()
        for writer in writers:
            writer.settle(opened)
        alive = sum(version is not None for writer in writers for version in writer.state.values())
        assert len(opened) == 60 + alive
    return sum(writer.acknowledged for writer in writers)


@pytest.mark.parametrize("kills", [2, pytest.param(10, marks=pytest.mark.slow)])
def test_no_acknowledged_write_is_lost(tmp_path, kills):
    assert drive_kills(tmp_path, vector_index(tmp_path / "index", range(60)), kills) > kills
