"""The model card: what a model is, how to use it, and its figures."""

from repconc.models.manifest import ModelManifest


def model_card(manifest: ModelManifest) -> str:
    structure = manifest.structure
    tags = f"dense-retrieval, {structure}-quantization" if structure else "dense-retrieval"
    ours = " with additive codes, which are not in the paper" if structure == "additive" else ""
    size = "uncompressed" if manifest.bytes is None else f"{manifest.bytes} bytes a document"
    ratio = "" if manifest.bytes is None else f", {4 * manifest.dimension / manifest.bytes:.0f}x less than float32"
    use = (
        "codes = model.encode_documents(['A passage.'])      # [1, M] uint8"
        if manifest.bytes
        else "vectors = model.encoder.embed_documents(['A passage.'])"
    )
    return f"""---
library_name: sentence-transformers
pipeline_tag: sentence-similarity
tags: [{tags}, repconc]
---
# {manifest.method} on {manifest.dataset}: {size}{ratio}

A query and a document encoder of {manifest.dimension} dimensions, searched by inner product, trained with RepCONC
(Zhan et al., WSDM 2022){ours}. The encoders load with sentence-transformers alone; the quantizer needs `repconc`.

```python
from repconc import RepconcModel

model = RepconcModel.load("path or name")
{use}
```

## Figures
Measured on the dev queries that chose the checkpoints; they are not test results.

{_table(manifest.figures)}
"""


def _table(figures: dict[str, dict[str, float]]) -> str:
    rows = [
        f"| {phase} | {name} | {value:.4g} |" for phase, values in figures.items() for name, value in values.items()
    ]
    return "\n".join(["| phase | figure | value |", "| --- | --- | ---: |", *rows])
