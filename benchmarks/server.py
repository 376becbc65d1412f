"""The server that is measured: the service, and beside it routes that read the same request and return a fixed body.

One is a route of the framework, the other is answered at the gate, as searches are.

python -m benchmarks.server INDEX PORT
"""

import os
import sys
from collections.abc import Mapping
from pathlib import Path

from fastapi import Response

from repconc.serving import schemas
from repconc.serving.app import create_app
from repconc.serving.gate import Direct
from repconc.serving.server import address_of, listen, open_indexes, run
from repconc.serving.settings import Limits, Source, access_of, read_token


def main(folder: str, port: str) -> None:
    limits = Limits()
    access = access_of("127.0.0.1", read_token(None, os.environ.get("REPCONC_TOKEN")), [])
    indexes = open_indexes([Source(name="index", folder=Path(folder))], limits)
    app, gate = create_app(indexes, access, limits)
    fixed: dict[int, bytes] = {}

    @app.post("/fixed/{size}")
    async def answer(size: int, request: schemas.SearchRequest) -> Response:
        if size not in fixed:
            fixed[size] = b" " * size
        return Response(fixed[size], media_type="application/json")

    async def answer_directly(query: bytes, headers: Mapping[bytes, bytes], body: bytes) -> bytes:
        schemas.SearchRequest.model_validate_json(body)
        return fixed[int(query)]

    gate.direct["POST", "/direct"] = Direct("/direct", answer_directly)
    with listen("127.0.0.1", int(port)) as listener:
        print(address_of(listener), flush=True)
        run(gate, listener, limits)


if __name__ == "__main__":
    main(*sys.argv[1:])
