"""What a trained model says of itself."""

from typing import Any

from pydantic import Field

from repconc.config import Settings

MANIFEST = "repconc.json"


class ModelManifest(Settings):
    """The file `repconc.json` in a model folder."""

    format: int = 1
    method: str
    dimension: int
    bytes: int | None
    """M, the bytes of a code; None for an uncompressed model."""
    codewords: int | None
    quantizer_sha256: str | None
    fingerprint: str
    """Of the encoders: an index refuses any other."""
    document_tokens: int | None = None
    query_tokens: int | None = None
    dataset: str
    recipe: dict[str, Any]
    figures: dict[str, dict[str, float]] = Field(default_factory=dict)
    """Phase -> measures of the dev queries, and the use of the codes."""

    @property
    def structure(self) -> str | None:
        """Of its codes: product or additive; None for an uncompressed model."""
        return self.recipe.get("quantizer", {}).get("codes") or "product" if self.bytes else None
