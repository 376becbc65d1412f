"""Several processes that train one model on one batch, each holding some rows of it.

Everything here is a sum, never an average: each rank computes its own share of the global loss (a sum over its rows
divided by the global number of rows), so gradients only have to be added up, and no factor has to be undone. A single
process is the case of one rank, in which nothing is sent.
"""

import os
from collections.abc import Iterable
from datetime import timedelta

import numpy as np
import torch
from torch import Tensor
from torch import distributed as dist

from repconc.quantization.sinkhorn import ALONE, Collectives


class Ranks:
    """This process among those that share a batch."""

    def __init__(self) -> None:
        """Join the group that `torchrun` describes in the environment; without one, be alone."""
        self.count = int(os.environ.get("WORLD_SIZE", "1"))
        if self.count > 1 and not dist.is_initialized():
            cards = torch.cuda.is_available()
            if cards:
                torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", "0")))
            # The first rank may encode a corpus for days while the others wait.
            dist.init_process_group("cuda:nccl,cpu:gloo" if cards else "gloo", timeout=timedelta(days=30))
        self.number = dist.get_rank() if self.count > 1 else 0

    @property
    def is_first(self) -> bool:
        return self.number == 0

    @property
    def collectives(self) -> Collectives:
        """What the constrained assignment needs to see the whole batch."""
        return ALONE if self.count == 1 else Collectives(self.sum, self.minimum)

    def sum(self, tensor: Tensor) -> Tensor:
        """The sum over all ranks, on each of them; a new tensor."""
        return self._reduce(tensor, dist.ReduceOp.SUM)

    def minimum(self, tensor: Tensor) -> Tensor:
        return self._reduce(tensor, dist.ReduceOp.MIN)

    def total(self, value: float) -> float:
        return float(self.sum(torch.tensor(value, dtype=torch.float64)))

    def first(self, value: float) -> float:
        """The first rank's value: sums in another order may round differently, and decisions must not differ."""
        return self.total(value if self.is_first else 0.0)

    def gather(self, rows: Tensor) -> Tensor:
        """[n, ...] of each rank -> [sum of n, ...] in the order of ranks. Ranks may hold different n."""
        if self.count == 1:
            return rows
        sizes = self._sizes(len(rows))
        padded = rows.new_zeros((max(sizes), *rows.shape[1:]))
        padded[: len(rows)] = rows
        parts = [torch.empty_like(padded) for _ in sizes]
        dist.all_gather(parts, padded.contiguous())
        return torch.cat([part[:size] for part, size in zip(parts, sizes, strict=True)])

    def own_rows(self, rows: int) -> slice:
        """Where this rank's rows lie in what `gather` gives."""
        sizes = self._sizes(rows) if self.count > 1 else [rows]
        start = sum(sizes[: self.number])
        return slice(start, start + rows)

    def share_of(self, numbers: np.ndarray) -> np.ndarray:
        """This rank's contiguous part of some work."""
        return np.array_split(numbers, self.count)[self.number]

    def sum_gradients(self, parameters: Iterable[torch.nn.Parameter]) -> None:
        """Add up the shares of all ranks; afterwards every rank holds the gradient of the global loss."""
        if self.count == 1:
            return
        for parameter in parameters:
            if parameter.grad is not None:  # what no rank's loss reads has none, such as a transformer's pooler
                dist.all_reduce(parameter.grad)

    def wait(self) -> None:
        if self.count > 1:
            dist.barrier()

    def _sizes(self, rows: int) -> list[int]:
        parts = [torch.zeros(1, dtype=torch.long) for _ in range(self.count)]
        dist.all_gather(parts, torch.tensor([rows]))
        return [int(part) for part in parts]

    def _reduce(self, tensor: Tensor, operation: dist.ReduceOp.RedOpType) -> Tensor:
        if self.count == 1:
            return tensor
        result = tensor.clone()
        dist.all_reduce(result, operation)
        return result
