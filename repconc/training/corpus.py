"""The documents and the dev queries as the model sees them at this moment."""

import numpy as np
import torch
from torch import Tensor

from repconc.evaluation.measures import evaluate
from repconc.models.dual import DualEncoder
from repconc.models.inputs import Inputs
from repconc.packages import Progress
from repconc.quantization.quantizer import Quantizer
from repconc.records import Hit
from repconc.training.embedding import embed_all
from repconc.training.examples import Examples
from repconc.training.negatives import FixedCodes, Passing, Searchable, top
from repconc.training.ranks import Ranks

DOCUMENTS_AT_A_TIME = 1 << 16
TEXTS_AT_A_TIME = 4096


class Corpus:
    """Embeds, codes and measures; ranks share the work."""

    def __init__(self, model: DualEncoder, examples: Examples, ranks: Ranks, chunk: int) -> None:
        self.model, self.examples, self.ranks, self.chunk = model, examples, ranks, min(chunk, TEXTS_AT_A_TIME)

    def __len__(self) -> int:
        return len(self.examples.documents)

    @property
    def everything(self) -> np.ndarray:
        return np.arange(len(self))

    def vectors(self, numbers: np.ndarray) -> Tensor:
        """[n, D] of some documents, on every rank."""
        own = self.ranks.share_of(numbers)
        return self.ranks.gather(embed_all(self.model, "document", self.examples.documents, own, self.chunk))

    def queries(self, inputs: Inputs, numbers: np.ndarray) -> Tensor:
        """[n, D] of some queries."""
        return embed_all(self.model, "query", inputs, numbers, self.chunk)

    def codes(self, quantizer: Quantizer, numbers: np.ndarray, progress: Progress | None = None) -> Tensor:
        """[n, M] uint8 of some documents, by the nearest codewords."""
        codec, parts = quantizer.to_codec(), []
        for start in range(0, len(numbers), DOCUMENTS_AT_A_TIME):
            part = numbers[start : start + DOCUMENTS_AT_A_TIME]
            parts.append(codec.encode(self.vectors(part).cpu().numpy()))
            if progress:
                progress(start + len(part), len(numbers))
        return torch.from_numpy(np.concatenate(parts)).to(self.model.device)

    def measure_vectors(self) -> dict[str, float]:
        """What dev queries find among uncompressed documents."""
        pool = self.examples.validation.documents
        return self.measure(Passing(lambda places: self.vectors(pool[places]), len(pool)), pool)

    def measure_codes(self, quantizer: Quantizer) -> dict[str, float]:
        """What dev queries find among documents coded as they now are."""
        pool = self.examples.validation.documents
        return self.measure(FixedCodes(quantizer, self.codes(quantizer, pool)), pool)

    def measure(self, documents: Searchable, pool: np.ndarray) -> dict[str, float]:
        """pool: the documents' numbers in the corpus."""
        validation, ids = self.examples.validation, self.examples.document_ids
        queries = self.queries(validation.queries, self.ranks.share_of(np.arange(len(validation.queries))))
        scores, places = (self.ranks.gather(part).cpu() for part in top(queries, documents, min(10, len(pool))))
        run = {
            query: [Hit(ids[number], value) for number, value in zip(pool[row].tolist(), values.tolist(), strict=True)]
            for query, row, values in zip(validation.query_ids, places.numpy(), scores, strict=True)
        }
        return evaluate(run, validation.qrels, [validation.measure], validation.relevance).means
