"""Any sentence-transformers or Hugging Face encoder, or a pair of them, that embeds queries and documents."""

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from repconc.config import EncoderSettings, Pooling
from repconc.errors import RepconcError, first_line, import_extra
from repconc.files import read_model
from repconc.models.manifest import MANIFEST, ModelManifest
from repconc.models.named import NAMES, folder_of_named
from repconc.packages import Progress

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

Side = Literal["query", "document"]


class Encoder:
    """Embeds queries and documents into one space, searched by inner product."""

    def __init__(
        self, settings: EncoderSettings | str | None = None, device: str | None = None, progress: Progress | None = None
    ) -> None:
        if not isinstance(settings, EncoderSettings):
            settings = EncoderSettings(documents=settings) if settings else EncoderSettings()
        # Folders are kept with their whole path, so that what was encoded here can be searched from elsewhere.
        names = {side: _whole_path(getattr(settings, side)) for side in ("documents", "queries")}
        self.settings = settings = settings.model_copy(update=_trained_limits(settings) | names)
        self._documents = _load(self.settings.documents, settings.pooling, device, progress)
        other = self.settings.queries
        self._queries = _load(other, settings.pooling, device, progress) if other else self._documents
        if self._dimension(self._queries) != self.dimension:
            raise RepconcError(
                f"The query encoder gives {self._dimension(self._queries)} dimensions and the document encoder "
                f"{self.dimension}; they must be equal."
            )
        _check_length(self._documents, "document", settings.document_tokens)
        _check_length(self._queries, "query", settings.query_tokens)

    def __repr__(self) -> str:
        return f"Encoder({self.settings.documents!r}, dimension={self.dimension})"

    @property
    def dimension(self) -> int:
        return self._dimension(self._documents)

    @property
    def device(self) -> Any:
        return self._documents.device

    def side(self, name: Side) -> "SentenceTransformer":
        return self._queries if name == "query" else self._documents

    @property
    def prompts(self) -> dict[str, str]:
        """What stands before each text, by side: as set, or else as the encoder itself has it."""
        own = {
            "query": self._queries.prompts.get("query"),
            "document": next(filter(None, map(self._documents.prompts.get, ("document", "passage", "corpus"))), None),
        }
        chosen = {"query": self.settings.query_prompt, "document": self.settings.document_prompt}
        return {side: text for side in own if (text := chosen[side] or own[side])}

    def tokenize(self, side: Side, texts: Sequence[str]) -> dict[str, Any]:
        """What the side's first module reads, exactly as `embed` hands it over."""
        limit = self.settings.query_tokens if side == "query" else self.settings.document_tokens
        with _TokenLimit(self.side(side), side, limit):
            features: dict[str, Any] = self.side(side).preprocess(list(texts), prompt=self.prompts.get(side), task=side)
        return features

    def embed_documents(self, texts: Sequence[str], batch_size: int = 64) -> np.ndarray:
        """[N, D] float32. The texts are batched by length and come back in their own order."""
        settings = self.settings
        with _TokenLimit(self._documents, "document", settings.document_tokens):
            return self._embed(self._documents.encode_document, texts, batch_size, settings.document_prompt)

    def embed_queries(self, texts: Sequence[str], batch_size: int = 64) -> np.ndarray:
        """[B, D] float32."""
        settings = self.settings
        if 0 < len(texts) <= batch_size and self._queries.truncate_dim is None:
            return self._embed_at_once("query", texts)
        with _TokenLimit(self._queries, "query", settings.query_tokens):
            return self._embed(self._queries.encode_query, texts, batch_size, settings.query_prompt)

    def _embed_at_once(self, side: Side, texts: Sequence[str]) -> np.ndarray:
        """One batch, without what the library does around it, which for a single query takes most of the time."""
        import torch

        model = self.side(side)
        if model.training:
            model.eval()
        with torch.inference_mode():
            features = self.tokenize(side, texts)
            placed = {name: part.to(model.device) for name, part in features.items() if hasattr(part, "to")}
            vectors = model(features | placed, task=side)["sentence_embedding"]
            if self.settings.normalize:
                vectors = torch.nn.functional.normalize(vectors, dim=1)
        return np.ascontiguousarray(vectors.float().cpu().numpy())

    def _embed(self, encode: Any, texts: Sequence[str], batch_size: int, prompt: str | None) -> np.ndarray:
        if not texts:
            return np.empty((0, self.dimension), np.float32)
        vectors = encode(
            list(texts),
            batch_size=batch_size,
            prompt=prompt,
            normalize_embeddings=self.settings.normalize,
            show_progress_bar=False,
            convert_to_numpy=True,
        )
        return np.ascontiguousarray(vectors, dtype=np.float32)

    def fingerprint(self) -> str:
        """A hash of all that decides the vectors: weights, tokenizers, modules and settings, but no path."""
        digest = hashlib.sha256()

        def add(value: object) -> None:
            digest.update(json.dumps(value, sort_keys=True, default=str).encode() + b"\n")

        add(self.settings.model_dump(exclude={"documents", "queries"}))
        for side in [self._documents] if self.settings.queries is None else [self._documents, self._queries]:
            add([side.prompts, side.default_prompt_name])
            for name, module in side.named_modules():
                add([name, type(module).__name__, _configuration_of(module), _tokenizer_of(module)])
            for name, tensor in sorted(side.state_dict().items()):
                add([name, str(tensor.dtype), list(tensor.shape)])
                digest.update(_bytes_of(tensor))
        return digest.hexdigest()

    @staticmethod
    def _dimension(side: "SentenceTransformer") -> int:
        return int(side.get_embedding_dimension() or 0)


class _TokenLimit:
    """Sets the longest text of one side for the time of one call: the two sides may share a module."""

    def __init__(self, model: "SentenceTransformer", route: str, tokens: int | None) -> None:
        self._module = _first_module(model, route)
        self._tokens = tokens

    def __enter__(self) -> None:
        if self._tokens is None:
            return
        if _is_static(self._module):
            self._module.tokenizer.enable_truncation(self._tokens)
        else:
            self._before = self._module.max_seq_length
            self._module.max_seq_length = self._tokens

    def __exit__(self, *_: object) -> None:
        if self._tokens is None:
            return
        if _is_static(self._module):
            self._module.tokenizer.no_truncation()
        else:
            self._module.max_seq_length = self._before


def _first_module(model: "SentenceTransformer", route: str) -> Any:
    """The module that reads the text, behind a router that of the given route."""
    routes = getattr(model[0], "sub_modules", None)
    return routes[route][0] if routes is not None and route in routes else model[0]


def _is_static(module: Any) -> bool:
    """Static encoders hold a bare tokenizer, which has no longest text of its own."""
    return not hasattr(module.tokenizer, "model_max_length")


def _check_length(model: "SentenceTransformer", route: str, tokens: int | None) -> None:
    configuration = getattr(getattr(_first_module(model, route), "auto_model", None), "config", None)
    positions = getattr(configuration, "max_position_embeddings", None)
    if tokens and positions and tokens > positions:
        raise RepconcError(
            f"A {route} of {tokens} tokens is longer than the {positions} that this encoder has places for."
        )


def _whole_path(name: str | None) -> str | None:
    return str(Path(name).resolve()) if name and name not in NAMES and Path(name).is_dir() else name


def _trained_limits(settings: EncoderSettings) -> dict[str, int | None]:
    """A model that was trained here with a longest text keeps it, unless another one is asked for."""
    path = Path(settings.documents) / MANIFEST
    if not path.exists():
        return {}
    manifest = read_model(path, ModelManifest)
    return {name: getattr(settings, name) or getattr(manifest, name) for name in ("document_tokens", "query_tokens")}


def _load(name: str, pooling: Pooling | None, device: str | None, progress: Progress | None) -> "SentenceTransformer":
    """A complete sentence-transformers model, or a plain Hugging Face encoder with the given pooling behind it."""
    library = import_extra("sentence_transformers", extra="train")
    modules = import_extra("sentence_transformers.sentence_transformer.modules", extra="train")
    folder = folder_of_named(name, progress) or Path(name)
    if name.startswith((".", "/")) and not folder.is_dir():
        raise RepconcError(
            f"The encoder {name!r} is not there: give a folder, a name on the hub, 'minilm' or 'static'."
        )
    location = str(folder) if folder.is_dir() else name
    try:
        if pooling is None or (folder / "modules.json").exists():
            model = library.SentenceTransformer(location, device=device, trust_remote_code=False)
        else:
            closed = {"trust_remote_code": False}  # an encoder is data; code that lies in its folder is not run
            transformer = modules.Transformer(
                location, model_kwargs=closed, processor_kwargs=closed, config_kwargs=closed
            )
            pool = modules.Pooling(transformer.get_embedding_dimension(), pooling_mode=pooling)
            model = library.SentenceTransformer(modules=[transformer, pool], device=device)
    except Exception as error:  # broken weights, an unknown device, a hub that does not answer: many kinds, one meaning
        raise RepconcError(f"The encoder {name!r} cannot be loaded: {first_line(error)}") from error
    return model.float() if model.device.type == "cpu" else model  # half precision is slow or missing on a CPU


def _bytes_of(tensor: Any) -> bytes:
    """The raw bytes of a tensor of any type; numpy does not know bfloat16."""
    import torch

    raw: bytes = tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().tobytes()
    return raw


def _configuration_of(module: Any) -> list[Any]:
    """What a module was made with, besides its weights: pooling mode, activation, heads, norms."""
    own = module.get_config_dict() if hasattr(module, "get_config_dict") else None
    to_dict = getattr(getattr(module, "config", None), "to_diff_dict", dict)
    inner: dict[str, Any] = to_dict()
    passing = {"_name_or_path", "transformers_version", "dtype", "torch_dtype", "architectures"}
    return [own, {key: value for key, value in inner.items() if key not in passing}]


def _tokenizer_of(module: Any) -> list[Any] | None:
    """The tokenizer that a module holds, without the padding and truncation that its last call left in it."""
    tokenizer = getattr(module, "tokenizer", None)
    backend = getattr(tokenizer, "backend_tokenizer", tokenizer)
    if backend is None or not hasattr(backend, "to_str"):
        return None
    content = json.loads(backend.to_str())
    lasting = {key: value for key, value in content.items() if key not in {"padding", "truncation"}}
    return [lasting, str(getattr(module, "max_seq_length", None))]
