"""Lines of a comparison that nobody ran: better methods and larger codes find more."""

from collections.abc import Iterable
from typing import Any

import numpy as np

from benchmarks.methods_tables import KINDS
from benchmarks.plan import SIZES, is_sized
from repconc.baselines.registry import methods

DIMENSIONS = {"static": 256, "heads": 384}
FIXED = {"BPR": 1 / 32, "binary (sentence-transformers)": 1 / 32, "RaBitQ (faiss)": 1 / 26, "BM25": 0.4}
FIXED |= {"int8 (sentence-transformers)": 1 / 4}
ORDER = [name for names in KINDS.values() for name in names]
QUESTIONS = 400


def made_up(recipe: str, dataset: str, seeds: Iterable[int] = (0,), sizes: Iterable[int] = ()) -> list[dict[str, Any]]:
    """All methods at all sizes; those of a fixed size once for each seed."""
    lines = []
    for seed in seeds:
        for place, (name, method) in enumerate(methods().items()):
            for size in (sizes or SIZES[recipe]) if is_sized(method) else [None]:
                lines.append(line(recipe, dataset, seed, name, size, place))
    return lines


def line(recipe: str, dataset: str, seed: int, name: str, size: int | None, place: int = 0) -> dict[str, Any]:
    D = DIMENSIONS[recipe]
    whole = 4 * D
    weight = size or whole * FIXED.get(name, 1.0)
    ease = 0.25 + 0.5 * ORDER.index(name) / len(ORDER) if size else 0.8
    chance = ease * min(1.0, 0.35 + 0.65 * np.log2(1 + weight / 4) / 3.5)
    found = np.random.default_rng([seed, place, size or 0]).random(QUESTIONS) < chance
    return {
        "method": name,
        "dataset": dataset,
        "recipe": recipe,
        "seed": seed,
        "bytes": size,
        "bytes_per_document": float(round(weight)),
        "shared_bytes": 256 * whole if size else 0,
        "dimensions": D,
        "documents": 60_000,
        "measures": {"MRR@10": float(found.mean()), "R@100": float(found.mean()) ** 0.5},
        "ranks": "".join("1" if one else "0" for one in found),
        "recalls": found.astype(float).tolist(),
        "fit_seconds": 60.0,
        "code_seconds": 1.0,
        "milliseconds_a_query": 2.5,
        "seconds": 70.0,
    }
