"""Settings as frozen models. They are saved inside every artefact that was made with them."""

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field


class Settings(BaseModel):
    """What all settings share: unknown names are refused and values never change."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


Pooling = Literal["mean", "cls", "max", "lasttoken"]


class EncoderSettings(Settings):
    """How text becomes vectors. What is None is left as the encoder itself has it."""

    documents: str = "minilm"
    """A name of ours (minilm, static), a sentence-transformers or Hugging Face folder, or a name on the hub."""
    queries: str | None = None
    """Another encoder for queries; None: the same one."""
    pooling: Pooling | None = None
    """For a plain Hugging Face encoder, which has none of its own."""
    normalize: bool = False
    """Scale vectors to length 1, where the encoder does not do so itself."""
    document_prompt: str | None = None
    query_prompt: str | None = None
    document_tokens: int | None = Field(default=None, ge=3, le=1_000_000)
    query_tokens: int | None = Field(default=None, ge=3, le=1_000_000)
    """The longest text in tokens, with the two marks that a transformer puts around it."""
