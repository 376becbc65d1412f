"""The server that is measured: the service, and beside it a route that reads the same request and returns a fixed body.

python -m benchmarks.server INDEX PORT
"""

import os
import sys
from pathlib import Path

from fastapi import Response

from repconc.serving import schemas
from repconc.serving.app import create_app
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

    with listen("127.0.0.1", int(port)) as listener:
        print(address_of(listener), flush=True)
        run(gate, listener, limits)


if __name__ == "__main__":
    main(*sys.argv[1:])
