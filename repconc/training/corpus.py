"""The documents and the dev queries as the model sees them at this moment."""

from collections.abc import Callable

import numpy as np
from torch import Tensor

from repconc.evaluation.measures import evaluate
from repconc.indexes.codes import CodeIndex
from repconc.indexes.flat import FlatIndex
from repconc.models.dual import DualEncoder
from repconc.models.inputs import Inputs
from repconc.packages import Progress
from repconc.quantization.product import ProductQuantizer
from repconc.records import Hit
from repconc.training.embedding import embed_all
from repconc.training.examples import Examples
from repconc.training.ranks import Ranks

DOCUMENTS_AT_A_TIME = 1 << 16
TEXTS_AT_A_TIME = 4096

VectorSearch = Callable[[np.ndarray, int], list[list[Hit]]]


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

    def codes(self, quantizer: ProductQuantizer, numbers: np.ndarray, progress: Progress | None = None) -> np.ndarray:
        """[n, M] uint8, by the nearest codewords."""
        codec, parts = quantizer.to_codec(), []
        for start in range(0, len(numbers), DOCUMENTS_AT_A_TIME):
            part = numbers[start : start + DOCUMENTS_AT_A_TIME]
            parts.append(codec.encode(self.vectors(part).cpu().numpy()))
            if progress:
                progress(start + len(part), len(numbers))
        return np.concatenate(parts)

    def measure_vectors(self) -> dict[str, float]:
        """What dev queries find among uncompressed documents."""
        numbers = self.examples.validation.documents
        return self.measure(FlatIndex(self._ids(numbers), [self.vectors(numbers).cpu().numpy()]).search)

    def measure_codes(self, quantizer: ProductQuantizer) -> dict[str, float]:
        """What dev queries find among documents coded as they now are."""
        numbers = self.examples.validation.documents
        return self.measure(CodeIndex(self._ids(numbers), self.codes(quantizer, numbers), quantizer.to_codec()).search)

    def measure(self, search: VectorSearch) -> dict[str, float]:
        validation = self.examples.validation
        queries = self.queries(validation.queries, np.arange(len(validation.queries)))
        run = dict(zip(validation.query_ids, search(queries.cpu().numpy(), 10), strict=True))
        return evaluate(run, validation.qrels, ["MRR@10"], validation.relevance).means

    def _ids(self, numbers: np.ndarray) -> list[str]:
        return [self.examples.document_ids[number] for number in numbers.tolist()]
