"""To a Lance dataset: ids, titles, texts, metadata, and the decoded vectors under an IVF_PQ index with our codebooks.

Lance keeps the vectors that an index was made from, so that the dataset is as large as uncompressed vectors on disk;
its search reads the codes. Needs pylance.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from repconc.additive import AdditiveCodec
from repconc.errors import RepconcError, import_extra
from repconc.files import atomic_directory
from repconc.indexes.folder import refuse_inside
from repconc.indexes.ivf import Index
from repconc.indexes.merging import documents_of
from repconc.packages import Progress


def export_lance(index: Index, output: Path, progress: Progress = lambda done, total: None) -> None:
    """Write the dataset and its index, or nothing."""
    if isinstance(index.scoring, AdditiveCodec):
        raise RepconcError("Lance knows no additive codes; train or compress with product codes for it.")
    if index.scoring.map is not None:
        raise RepconcError("Lance has no place for a rotation or a map; this index can be exported to faiss.")
    lance = import_extra("lance", extra="lance")
    arrow = import_extra("pyarrow", extra="lance")
    refuse_inside(index.folder, output)
    M, K, d = index.scoring.codebooks.shape
    columns = [(name, arrow.string()) for name in ("id", "title", "text", "metadata")]
    schema = arrow.schema([*columns, ("vector", arrow.list_(arrow.float32(), M * d))])
    with atomic_directory(output) as partial:
        reader = arrow.RecordBatchReader.from_batches(schema, _batches(index, arrow, schema, progress))
        dataset = lance.write_dataset(reader, str(partial))
        dataset.create_index(
            "vector",
            "IVF_PQ",
            metric="dot",
            num_partitions=index.manifest.lists,
            ivf_centroids=index.centroids.astype(np.float32),
            num_sub_vectors=M,
            pq_codebook=np.pad(index.scoring.codebooks, ((0, 0), (0, 256 - K), (0, 0))),
        )


def _batches(index: Index, arrow: Any, schema: Any, progress: Progress) -> Iterator[Any]:
    done = 0
    for segment in index.segments:
        for documents, codes, _ in documents_of(segment):
            vectors = index.scoring.decode(codes)
            texts = [
                [document.id for document in documents],
                [document.title for document in documents],
                [document.text for document in documents],
                [json.dumps(dict(document.metadata)) for document in documents],
            ]
            flat = arrow.FixedSizeListArray.from_arrays(arrow.array(vectors.reshape(-1)), vectors.shape[1])
            yield arrow.record_batch([*map(arrow.array, texts), flat], schema=schema)
            done += len(documents)
            progress(done, len(index))
