"""Stage 1 and stage 2 in the trainer of sentence-transformers: the other choice for the training loop."""

import logging
import tempfile
from collections.abc import Iterable

import numpy as np
import torch
from datasets import Dataset, disable_progress_bars
from sentence_transformers import SentenceTransformerTrainer, SentenceTransformerTrainingArguments
from torch import Tensor, nn

from repconc import Encoder
from repconc.losses.ranking import ranking_of_scores
from repconc.models.dual import DualEncoder
from repconc.quantization.product import ProductQuantizer
from repconc.quantization.quantizer import Constraint
from repconc.training.foreign import StageOneForTrainer
from repconc.training.negatives import FixedCodes, top_irrelevant


class StageTwoForTrainer(nn.Module):
    """The label of a query is its number; its positive has the same one."""

    def __init__(self, model: nn.Module, documents: FixedCodes, scale: float) -> None:
        super().__init__()
        self.model, self.documents, self.scale = model, documents, scale
        self.codebooks = documents.quantizer.codebooks

    def forward(self, columns: Iterable[dict[str, Tensor]], labels: Tensor) -> Tensor:
        (queries,) = [self.model(features)["sentence_embedding"] for features in columns]
        relevant = [np.array([number]) for number in labels.tolist()]
        negatives = top_irrelevant(queries.detach(), self.documents, relevant, 200)
        scores = self.scale * self.documents.scores(queries, torch.cat([labels[:, None], negatives], dim=1))
        return ranking_of_scores(scores, torch.zeros_like(labels))


def stage_one_pairs_per_second(
    documents: list[str], queries: list[str], quantizer: ProductQuantizer, steps: int
) -> float:
    """documents: the positives of the queries, then one hard negative each."""
    model, B = DualEncoder.of(Encoder("static")), len(queries)
    loss = StageOneForTrainer(model.text, quantizer, weight=0.05, scale=20.0, constraint=Constraint())
    columns = {"query": queries, "positive": documents[:B], "negative": documents[B:]}
    return _rate(model, loss, Dataset.from_dict({name: texts * steps for name, texts in columns.items()}), B, steps)


def stage_two_pairs_per_second(queries: list[str], documents: FixedCodes, steps: int) -> float:
    model, B = DualEncoder.of(Encoder("static")), len(queries)
    columns = {"query": queries * steps, "label": list(range(B)) * steps}
    return _rate(model, StageTwoForTrainer(model.text, documents, 20.0), Dataset.from_dict(columns), B, steps)


def _rate(model: DualEncoder, loss: nn.Module, dataset: Dataset, batch: int, steps: int) -> float:
    disable_progress_bars()
    logging.getLogger("sentence_transformers").setLevel(logging.ERROR)
    with tempfile.TemporaryDirectory() as folder:
        arguments = SentenceTransformerTrainingArguments(
            output_dir=folder,
            per_device_train_batch_size=batch,
            max_steps=steps,
            learning_rate=1e-9,
            report_to=[],
            save_strategy="no",
            logging_strategy="no",
            disable_tqdm=True,
            use_cpu=True,
            router_mapping={"query": "query", "positive": "document", "negative": "document"},
        )
        trainer = SentenceTransformerTrainer(model=model.text, args=arguments, train_dataset=dataset, loss=loss)
        return float(batch * steps / trainer.train().metrics["train_runtime"])
