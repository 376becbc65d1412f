"""A static encoder distilled from a transformer: a text's vector is the mean of its tokens' vectors.

After Model2Vec (Tulkens and van Dongen, 2024), in three steps: pass each token of the vocabulary through the teacher on
its own; keep the D strongest principal components, each scaled to unit variance; weigh tokens by how rare they are,
w = a / (a + p) (Arora et al., 2017). A WordPiece vocabulary lists its words in order of frequency, so p follows from
the rank by Zipf's law. Scaling and a were chosen on the dev queries of HotpotQA and InsuranceQA.
"""

from typing import TYPE_CHECKING, Any

import numpy as np

from repconc.errors import import_extra
from repconc.packages import Progress

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

SMOOTHING = 3e-4


def distil(teacher: str, dimension: int, progress: Progress | None = None) -> "SentenceTransformer":
    """A sentence-transformers model of one StaticEmbedding and a Normalize module."""
    library = import_extra("sentence_transformers", extra="train")
    modules = import_extra("sentence_transformers.sentence_transformer.modules", extra="train")
    model = library.SentenceTransformer(teacher)
    tokenizer = model.tokenizer
    vectors = _embed_tokens(model, tokenizer, progress)  # [V, teacher's D]
    weights = (
        principal_components(vectors, dimension) * rarity(tokenizer.convert_ids_to_tokens(range(len(vectors))))[:, None]
    )  # [V, D]
    weights[tokenizer.all_special_ids] = 0
    embedding = modules.StaticEmbedding(tokenizer, embedding_weights=weights.astype(np.float32))
    return library.SentenceTransformer(modules=[embedding, modules.Normalize()], device="cpu")


def _embed_tokens(
    model: "SentenceTransformer", tokenizer: Any, progress: Progress | None, batch: int = 1024
) -> np.ndarray:
    """The teacher's vector of each token between its sentence marks."""
    import torch

    total = len(tokenizer)
    first, last = tokenizer.cls_token_id, tokenizer.sep_token_id
    rows = []
    with torch.inference_mode():
        for start in range(0, total, batch):
            tokens = torch.arange(start, min(start + batch, total))
            ids = torch.stack([torch.full_like(tokens, first), tokens, torch.full_like(tokens, last)], dim=1)
            features = {"input_ids": ids, "attention_mask": torch.ones_like(ids)}
            features = {name: tensor.to(model.device) for name, tensor in features.items()}
            rows.append(model(features)["sentence_embedding"].cpu().numpy())
            if progress:
                progress(start + len(tokens), total)
    return np.concatenate(rows)


def principal_components(vectors: np.ndarray, dimension: int) -> np.ndarray:
    """[V, D]: the vectors in the basis of their strongest directions, centred and of unit variance.

    The sign of each direction is fixed, so that runs agree.
    """
    centred = (vectors - vectors.mean(axis=0)).astype(np.float64)
    _, directions = np.linalg.eigh(centred.T @ centred)
    strongest = directions[:, ::-1][:, :dimension]
    signs = np.sign(strongest[np.abs(strongest).argmax(axis=0), np.arange(strongest.shape[1])])
    components = centred @ (strongest * signs)
    return np.asarray(components / components.std(axis=0))


def rarity(tokens: list[str]) -> np.ndarray:
    """[V]: the weight of each token of a vocabulary that lists marks and letters first, then words by frequency.

    Marks such as the comma are weighed like the most frequent word: they are everywhere and mean nothing.
    """
    first_word = next(
        rank for rank, token in enumerate(tokens) if token.isalpha() and token.isascii() and len(token) > 1
    )
    rank = np.maximum(np.arange(len(tokens)) - first_word, 0) + 2
    frequency = 1 / rank
    frequency /= frequency[first_word:].sum()
    return np.asarray(SMOOTHING / (SMOOTHING + frequency))
