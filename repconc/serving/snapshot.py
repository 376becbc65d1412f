"""An index at one moment, with what is needed to ask it. A request keeps the one that it began with."""

import logging
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from repconc.errors import RepconcError
from repconc.indexes.flat import FlatIndex
from repconc.indexes.ivf import Index
from repconc.search import encoder_of
from repconc.serving.exact import Exact
from repconc.serving.schemas import IndexResponse
from repconc.serving.settings import Source
from repconc.vectors import Vectors

log = logging.getLogger("repconc.serving")

if TYPE_CHECKING:
    from repconc.models.encoder import Encoder


@dataclass(frozen=True)
class Snapshot:
    """What a search reads."""

    index: Index
    encoder: "Encoder | None"
    exact: Exact | None
    """Uncompressed vectors, to compare with; they are as old as their files."""
    described: IndexResponse


def open_snapshot(source: Source, before: Snapshot | None = None) -> Snapshot:
    """The newest state; what did not change since `before` is not loaded again."""
    folder = source.folder.resolve()  # a link may turn at any time: a state belongs to the folder that it was read from
    index = Index(folder, like=before.index if before else None)
    reference = index.manifest.model
    if before is not None and reference == before.index.manifest.model:
        encoder, exact = before.encoder, before.exact
    else:
        encoder = encoder_of(index, source.device, source.model) if reference else None
        exact = _open_exact(source.vectors, index, first=before is None) if source.vectors else None
    return Snapshot(index, encoder, exact, describe(source.name, index, encoder is not None, exact is not None))


def _open_exact(folder: Path, index: Index, first: bool) -> Exact | None:
    """first: at the start others' vectors are an error; later another index took the place, and goes without them."""
    vectors = Vectors(folder)
    reference = index.manifest.model
    if reference is None or vectors.plan.fingerprint != reference.fingerprint:
        sentence = f"The vectors in {folder} were not made by the model of {index.folder}; encode with that model."
        if first:
            raise RepconcError(sentence)
        log.warning("%s Until then there is no uncompressed ranking.", sentence)
        return None
    vectors.verify()
    return Exact(FlatIndex(vectors.ids, list(vectors.blocks())))


def describe(name: str, index: Index, reads_text: bool, exact: bool) -> IndexResponse:
    """What is in an index; of its model only the name, for paths are nobody's business."""
    manifest, count = index.manifest, max(1, len(index))
    return IndexResponse(
        name=name,
        version=manifest.version,
        documents=len(index),
        removed=sum(segment.removed for segment in manifest.segments),
        segments=len(manifest.segments),
        model=Path(manifest.model.name).name if manifest.model else None,
        dimension=manifest.dimension,
        lists=manifest.lists,
        probes=manifest.probes,
        bytes=index.sizes(),
        search_bytes=index.nbytes,
        bytes_per_document=index.nbytes / count,
        times_smaller=4 * manifest.dimension * count / max(1, index.nbytes),
        fields=sorted(index.fields),
        reads_text=reads_text,
        exact=exact,
    )
