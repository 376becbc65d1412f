"""Both codecs of a model or an index in one file: what documents are coded with, and what queries are scored with.

Additive codebooks are bytes, and have scales beside them.
"""

import numpy as np
import safetensors
from safetensors.numpy import load, save

from repconc.additive import BEAM, WIDEST_BEAM, AdditiveCodec
from repconc.codec import Codec
from repconc.errors import RepconcError, first_line
from repconc.lengths import Lengths
from repconc.maps import VectorMap


def to_bytes(coding: Codec, scoring: Codec) -> bytes:
    """The content of the file."""
    arrays: dict[str, np.ndarray] = {}
    for name, codec in (("coding", coding), ("scoring", scoring)):
        arrays |= {name: np.ascontiguousarray(codec.codebooks)} | {
            f"{name}.{part}": array for part, array in _arrays_of(codec.map).items()
        }
        if isinstance(codec, AdditiveCodec):
            arrays[f"{name}.scales"] = codec.scales
    if isinstance(coding, AdditiveCodec):
        arrays["coding.beam"] = np.array([coding.beam], np.uint16)
    if coding.lengths is not None:
        arrays |= {"coding.edges": coding.lengths.edges, "coding.gains": coding.lengths.gains}
    return save(arrays)


def from_bytes(content: bytes, dimension: int, source: object) -> tuple[Codec, Codec]:
    """What `to_bytes` wrote; source: the file, to be named where it holds something else."""
    try:
        arrays = load(content)
    except safetensors.SafetensorError as error:
        raise RepconcError(f"{source} does not hold two codebooks: {first_line(error)}") from error
    other = sorted(arrays.keys() - KNOWN) + [name for name in arrays if arrays[name].dtype == np.float16]
    if other:
        raise RepconcError(f"{source} was written by another version: it holds {other}; build it again.")
    try:
        classed = "coding.edges" in arrays or "coding.gains" in arrays
        lengths = Lengths(arrays["coding.edges"], arrays["coding.gains"]) if classed else None
        beam = arrays.get("coding.beam", np.array([BEAM], np.uint16))
        if beam.shape != (1,) or beam.dtype != np.uint16 or not 1 <= beam[0] <= WIDEST_BEAM:
            raise RepconcError("its beam is none.")
        return _codec_of(arrays, "coding", dimension, lengths, int(beam[0])), _codec_of(arrays, "scoring", dimension)
    except (RepconcError, KeyError) as error:
        raise RepconcError(f"{source} does not hold two codebooks: {first_line(error)}") from error


def _codec_of(
    arrays: dict[str, np.ndarray], name: str, dimension: int, lengths: Lengths | None = None, beam: int = BEAM
) -> Codec:
    codebooks, mapping, scales = arrays[name], _map_of(arrays, name), arrays.get(f"{name}.scales")
    if codebooks.ndim != 3 or codebooks.dtype != (np.float32 if scales is None else np.int8):
        raise RepconcError(f"{codebooks.ndim} dimensions of {codebooks.dtype} are none.")
    if scales is None:
        return Codec(codebooks, dimension, mapping, lengths)
    return AdditiveCodec(codebooks, dimension, mapping, lengths, beam, scales)


PARTS = ("linear", "inner", "outer", "unit", "scales")
KNOWN = {name for codec in ("coding", "scoring") for name in (codec, *(f"{codec}.{part}" for part in PARTS))}
KNOWN |= {"coding.beam", "coding.edges", "coding.gains"}


def _arrays_of(mapping: VectorMap | None) -> dict[str, np.ndarray]:
    if mapping is None:
        return {}
    parts = {"linear": mapping.linear, "inner": mapping.inner, "outer": mapping.outer}
    unit = {"unit": np.ones(1, np.uint8)} if mapping.unit else {}
    return {name: np.ascontiguousarray(part) for name, part in parts.items() if part is not None} | unit


def _map_of(arrays: dict[str, np.ndarray], name: str) -> VectorMap | None:
    parts = {part: arrays[f"{name}.{part}"] for part in ("linear", "inner", "outer") if f"{name}.{part}" in arrays}
    return VectorMap(**parts, unit=f"{name}.unit" in arrays) if parts else None
