"""The client gives what the server's index gives."""

import socket
import threading

import numpy as np
import pytest

from repconc import Client, Document, RepconcError
from repconc.indexes.ivf import Index
from repconc.search import Searcher
from repconc.serving.client import ServiceError
from tests.serving.conftest import vector_of
from tests.serving.running import TOKEN


def test_it_searches_texts(text_server, text_folder):
    searcher = Searcher.open(text_folder / "texts")
    with Client(text_server.address) as client:
        assert client.names() == ["texts", "numbers"] and client.info().documents == 120
        questions = ["river of gold", "the king"]
        wanted = {"k": 4, "filter": 'lang = "en"', "documents": True}
        found = client.search(questions, **wanted)
        assert [[hit.id for hit in hits] for hits in found] == [
            [hit.id for hit in hits] for hits in searcher.search(questions, **wanted)
        ]
        assert found[0][0].document == Index(text_folder / "texts").get(found[0][0].id)
        assert np.allclose(client.embed(questions), searcher.encoder.embed_queries(questions), atol=1e-6)
        assert client.search(["river"], 3, exact=True)[0]


def test_it_writes(vector_server):
    with Client(vector_server.address, token=TOKEN) as client:
        document = Document("client / 1", "some text", "Title", {"year": 1999})
        assert client.add([document], np.array([vector_of(1)])).added == 1
        assert client.get("client / 1") == document
        assert (
            client.search(np.array([vector_of(1)]), 1, filter="year = 1999", documents=True)[0][0].document == document
        )
        assert client.remove("client / 1").removed == 1
        assert client.get("client / 1") is None
        with pytest.raises(ServiceError, match="no document with this id") as refused:
            client.remove("client / 1")
        assert refused.value.status == 404 and refused.value.code == "unknown_document"


def test_what_is_refused(vector_server):
    with pytest.raises(RepconcError, match="is no address of a server"):
        Client("localhost:80")
    with Client(vector_server.address, index="other") as client, pytest.raises(ServiceError, match="no index"):
        client.info()
    with Client(vector_server.address) as client:
        with pytest.raises(ServiceError, match="needs the token"):
            client.remove("d1")
        with pytest.raises(RepconcError, match="Give a list of questions"):
            client.search("river")
    with socket.create_server(("127.0.0.1", 0)) as nobody:
        address = f"http://127.0.0.1:{nobody.getsockname()[1]}"
    with Client(address) as client, pytest.raises(RepconcError, match="does not answer"):
        client.info()


def test_it_comes_again_when_the_server_is_busy():
    busy = (
        b'HTTP/1.1 429 X\r\nRetry-After: 0\r\nContent-Length: 44\r\n\r\n{"error": {"code": "busy", "message": "Busy."}}'
    )
    busy = busy.replace(b"44", str(len(busy.partition(b"\r\n\r\n")[2])).encode())
    good = b'HTTP/1.1 200 X\r\nContent-Length: 20\r\n\r\n{"indexes": ["one"]}'
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def answer() -> None:
            connection, _ = listener.accept()
            with connection:
                for reply in (busy, busy, good):
                    connection.recv(10_000)
                    connection.sendall(reply)

        thread = threading.Thread(target=answer)
        thread.start()
        with Client(f"http://127.0.0.1:{listener.getsockname()[1]}") as client:
            assert client.names() == ["one"]
        thread.join()
