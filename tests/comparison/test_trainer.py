"""Stage 1's loss in the trainer of sentence-transformers: the value of our own step, and codebooks that learn."""

import torch
from datasets import Dataset
from sentence_transformers import SentenceTransformerTrainer, SentenceTransformerTrainingArguments

from repconc.models.dual import DualEncoder
from repconc.models.encoder import Encoder
from repconc.quantization.product import ProductQuantizer
from repconc.quantization.quantizer import Constraint
from repconc.training.examples import Batch
from repconc.training.foreign import StageOneForTrainer
from repconc.training.ranks import Ranks
from repconc.training.stage_one import StageOneLoss
from repconc.training.step import contrast
from tests.training.conftest import examples_of, texts, tiny_static  # noqa: F401 (a fixture)


def test_it_trains_there_too(tiny_static, tmp_path):  # noqa: F811
    encoder = Encoder(str(tiny_static), device="cpu")
    model, examples = DualEncoder.of(encoder), examples_of(encoder)
    quantizer = ProductQuantizer(torch.randn(4, 8, 4, generator=torch.Generator().manual_seed(0)), 16)
    constraint = Constraint(0.05, 20)
    numbers = torch.tensor([1, 2, 4, 5, 7, 8, 10, 11]).numpy()  # queries with one relevant document each
    ours = contrast(
        model,
        examples,
        Batch(numbers, numbers),
        StageOneLoss(quantizer, constraint, 0.2, 20.0, Ranks()),
        Ranks(),
        chunk=4,
    )
    documents, queries = texts()
    columns = {"query": [queries[n] for n in numbers], "positive": [documents[n] for n in numbers]}
    loss = StageOneForTrainer(model.text, quantizer, weight=0.2, scale=20.0, constraint=constraint)
    before = quantizer.codebooks.detach().clone()
    arguments = SentenceTransformerTrainingArguments(
        output_dir=str(tmp_path),
        per_device_train_batch_size=8,
        max_steps=1,
        logging_steps=1,
        report_to=[],
        use_cpu=True,
        learning_rate=0.01,
        router_mapping={"query": "query", "positive": "document"},
    )
    model.zero_grad()
    trainer = SentenceTransformerTrainer(
        model=model.text, args=arguments, train_dataset=Dataset.from_dict(columns), loss=loss
    )
    trainer.train()
    logged = next(line["loss"] for line in trainer.state.log_history if "loss" in line)
    assert logged == torch.tensor(sum(ours.values())).item() or abs(logged - sum(ours.values())) < 1e-3
    assert not torch.equal(before, quantizer.codebooks.detach())
