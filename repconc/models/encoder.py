"""Any sentence-transformers or Hugging Face encoder, or a pair of them, that embeds queries and documents."""

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from repconc.config import EncoderSettings
from repconc.errors import RepconcError, import_extra
from repconc.models.named import folder_of_named
from repconc.packages import Progress

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer


class Encoder:
    """Embeds queries and documents into one space, searched by inner product."""

    def __init__(
        self, settings: EncoderSettings | str, device: str | None = None, progress: Progress | None = None
    ) -> None:
        self.settings = EncoderSettings(documents=settings) if isinstance(settings, str) else settings
        self._documents = _load(self.settings.documents, self.settings, device, progress)
        other = self.settings.queries
        self._queries = _load(other, self.settings, device, progress) if other else self._documents
        if self._dimension(self._queries) != self.dimension:
            raise RepconcError(
                f"The query encoder gives {self._dimension(self._queries)} dimensions and the document encoder "
                f"{self.dimension}; they must be equal."
            )

    def __repr__(self) -> str:
        return f"Encoder({self.settings.documents!r}, dimension={self.dimension})"

    @property
    def dimension(self) -> int:
        return self._dimension(self._documents)

    def embed_documents(self, texts: Sequence[str], batch_size: int = 64) -> np.ndarray:
        """[N, D] float32. The texts are batched by length and come back in their own order."""
        settings = self.settings
        with _TokenLimit(self._documents, "document", settings.document_tokens):
            return self._embed(self._documents.encode_document, texts, batch_size, settings.document_prompt)

    def embed_queries(self, texts: Sequence[str], batch_size: int = 64) -> np.ndarray:
        """[B, D] float32."""
        settings = self.settings
        with _TokenLimit(self._queries, "query", settings.query_tokens):
            return self._embed(self._queries.encode_query, texts, batch_size, settings.query_prompt)

    def _embed(self, encode: Any, texts: Sequence[str], batch_size: int, prompt: str | None) -> np.ndarray:
        if not texts:
            return np.empty((0, self.dimension), np.float32)
        vectors = encode(
            list(texts),
            batch_size=batch_size,
            prompt=prompt,
            normalize_embeddings=bool(self.settings.normalize),
            show_progress_bar=False,
            convert_to_numpy=True,
        )
        return np.ascontiguousarray(vectors, dtype=np.float32)

    def fingerprint(self) -> str:
        """A hash of all that decides the vectors: weights, tokenizers, modules and settings, but no path."""
        digest = hashlib.sha256()
        settings = self.settings.model_dump(exclude={"documents", "queries"})
        digest.update(repr(sorted(settings.items())).encode())
        for side in (self._documents, self._queries):
            digest.update(repr((sorted(side.prompts.items()), side.default_prompt_name)).encode())
            for name, module in side.named_modules():
                digest.update(f"{name}:{type(module).__name__}\n".encode())
                digest.update(_tokenizer_of(module))
            for name, tensor in sorted(side.state_dict().items()):
                array = tensor.detach().cpu().contiguous().numpy()
                digest.update(f"{name}{array.dtype}{array.shape}".encode())
                digest.update(array.tobytes())
        return digest.hexdigest()

    @staticmethod
    def _dimension(side: "SentenceTransformer") -> int:
        return int(side.get_embedding_dimension() or 0)


class _TokenLimit:
    """Sets the longest text of one side for the time of one call: the two sides may share a module."""

    def __init__(self, model: "SentenceTransformer", route: str, tokens: int | None) -> None:
        first = model[0]
        routes = getattr(first, "sub_modules", None)
        self._module = routes[route][0] if routes is not None and route in routes else first
        self._tokens = tokens

    def __enter__(self) -> None:
        if self._tokens is None:
            return
        if hasattr(self._module, "tokenizer") and not hasattr(self._module.tokenizer, "model_max_length"):
            self._module.tokenizer.enable_truncation(self._tokens)  # static encoders hold a bare tokenizer
        else:
            self._before = self._module.max_seq_length
            self._module.max_seq_length = self._tokens

    def __exit__(self, *_: object) -> None:
        if self._tokens is None:
            return
        if hasattr(self, "_before"):
            self._module.max_seq_length = self._before
        else:
            self._module.tokenizer.no_truncation()


def _load(name: str, settings: EncoderSettings, device: str | None, progress: Progress | None) -> "SentenceTransformer":
    library = import_extra("sentence_transformers", extra="train")
    location = str(folder_of_named(name, progress) or name)
    if Path(location).is_dir() or not location.startswith(("/", ".")):
        try:
            if settings.pooling is None:
                return library.SentenceTransformer(location, device=device)
            modules = import_extra("sentence_transformers.sentence_transformer.modules", extra="train")
            transformer = modules.Transformer(location)
            pooling = modules.Pooling(transformer.get_embedding_dimension(), pooling_mode=settings.pooling)
            return library.SentenceTransformer(modules=[transformer, pooling], device=device)
        except (OSError, ValueError) as error:
            reason = str(error).splitlines()[0] if str(error) else type(error).__name__
            raise RepconcError(f"The encoder {name!r} cannot be loaded: {reason}") from error
    raise RepconcError(f"The encoder {name!r} is not there: give a folder, a name on the hub, 'minilm' or 'static'.")


def _tokenizer_of(module: Any) -> bytes:
    """The tokenizer that a module holds, without the padding and truncation that its last call left in it."""
    tokenizer = getattr(module, "tokenizer", None)
    backend = getattr(tokenizer, "backend_tokenizer", tokenizer)
    if backend is None or not hasattr(backend, "to_str"):
        return b""
    content = json.loads(backend.to_str())
    lasting = {key: value for key, value in content.items() if key not in {"padding", "truncation"}}
    return json.dumps([lasting, str(getattr(module, "max_seq_length", None))], sort_keys=True).encode()
