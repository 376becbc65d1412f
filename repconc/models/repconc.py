"""A trained model on disk: a sentence-transformers folder with a quantizer beside it.

    modules.json, ...          query and document encoder behind a router, then the rotation: the library's own format
    quantizer.safetensors      coding [M, K, d] and scoring [M, K, d], the codebooks before and after stage 2
    repconc.json               what it is: sizes, token limits, recipe, figures, fingerprints; written last
    README.md                  the model card

Documents are coded with the codebooks and the document encoder of stage 1; queries are scored with the codebooks of
stage 2. Adding a document later needs the first, scoring needs the second, so both are kept.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from repconc.codec import Codec
from repconc.codec_files import from_bytes, to_bytes
from repconc.errors import RepconcError, first_line, import_extra
from repconc.files import atomic_directory, read_model, sha256_of, write_model
from repconc.models.card import model_card
from repconc.models.dual import DualEncoder
from repconc.models.encoder import Encoder
from repconc.models.manifest import MANIFEST, ModelManifest

QUANTIZER = "quantizer.safetensors"


class RepconcModel:
    """Text to vectors to codes, as it was trained."""

    def __init__(self, encoder: Encoder, coding: Codec | None, scoring: Codec | None, manifest: ModelManifest) -> None:
        self.encoder = encoder
        self._coding, self._scoring = coding, scoring
        self.manifest = manifest

    @classmethod
    def load(cls, name: Path | str, device: str | None = None) -> "RepconcModel":
        """Open a folder, or fetch a model of that name from the hub first."""
        folder = Path(name) if Path(name).is_dir() else _from_hub(str(name))
        if not (folder / MANIFEST).exists():
            raise RepconcError(f"{folder} is no model of ours: it has no {MANIFEST}; 'repconc train' makes one.")
        manifest = read_model(folder / MANIFEST, ModelManifest)
        encoder = Encoder(str(folder), device)
        if encoder.dimension != manifest.dimension or encoder.fingerprint() != manifest.fingerprint:
            raise RepconcError(f"The encoders in {folder} are not those that were saved; get the model again.")
        if manifest.bytes is None:
            return cls(encoder, None, None, manifest)
        path = folder / QUANTIZER
        if not path.exists() or sha256_of(path) != manifest.quantizer_sha256:
            raise RepconcError(f"{path} is missing or damaged; get the model again.")
        return cls(encoder, *from_bytes(path.read_bytes(), manifest.dimension, path), manifest)

    @property
    def is_compressed(self) -> bool:
        return self._coding is not None

    @property
    def coding(self) -> Codec:
        """What documents are coded with."""
        return self._require(self._coding)

    @property
    def scoring(self) -> Codec:
        """What queries are scored with."""
        return self._require(self._scoring)

    def encode_documents(self, texts: Sequence[str], batch_size: int = 64) -> np.ndarray:
        """[N, M] uint8."""
        return self.coding.encode(self.encoder.embed_documents(texts, batch_size))

    def push_to_hub(self, name: str, *, private: bool = True, token: str | None = None) -> str:
        """Upload the folder that the model was loaded from, as it is; gives its address."""
        hub = import_extra("huggingface_hub", extra="train").HfApi(token=token)
        try:
            hub.create_repo(name, private=private, exist_ok=True)
            address = hub.upload_folder(repo_id=name, folder_path=self.encoder.settings.documents)
        except Exception as error:  # no network, no right, a bad name: the hub's own words say which
            raise RepconcError(f"The model could not be uploaded as {name!r}: {first_line(error)}") from error
        return str(address)

    def _require(self, codec: Codec | None) -> Codec:
        if codec is None:
            raise RepconcError("This model is uncompressed (method dense): it has no codebooks.")
        return codec


def save_model(
    folder: Path,
    model: DualEncoder,
    coding: Codec | None,
    scoring: Codec | None,
    about: dict[str, Any],
    files: dict[str, bytes],
) -> None:
    """Write a whole model folder at once. about: further fields of the manifest; files: what else goes into it."""
    with atomic_directory(folder) as partial:
        model.text.save(str(partial), create_model_card=False)
        checksum = None
        if coding is not None and scoring is not None:
            (partial / QUANTIZER).write_bytes(to_bytes(coding, scoring))
            checksum = sha256_of(partial / QUANTIZER)
        unsigned = ModelManifest(
            dimension=model.dimension,
            bytes=coding.blocks if coding else None,
            codewords=coding.codebooks.shape[1] if coding else None,
            quantizer_sha256=checksum,
            fingerprint="",
            **about,
        )
        write_model(partial / MANIFEST, unsigned)  # token limits are read from it by the encoder that is hashed next
        fingerprint = Encoder(str(partial), device="cpu").fingerprint()
        manifest = unsigned.model_copy(update={"fingerprint": fingerprint})
        write_model(partial / MANIFEST, manifest)
        (partial / "README.md").write_text(model_card(manifest), encoding="utf-8")
        for name, content in files.items():
            (partial / name).write_bytes(content)


def _from_hub(name: str) -> Path:
    hub = import_extra("huggingface_hub", extra="train")
    try:
        return Path(hub.snapshot_download(name))
    except Exception as error:  # not found, no network, no right
        raise RepconcError(f"{name!r} is neither a folder nor a model on the hub: {first_line(error)}") from error
