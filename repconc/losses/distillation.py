"""Distillation: compressed scores should rank documents as uncompressed ones do (Xiao et al., Distill-VQ, SIGIR 2022).

Not in the paper, which leaves it to future work. It needs no labels, and it does not take a right answer that nobody
marked for a wrong one, as a hard negative does.
"""

import torch
from torch import Tensor


def distillation(scores: Tensor, teacher: Tensor, masked: Tensor | None = None) -> Tensor:
    """Mean over queries of KL(softmax(teacher) || softmax(scores)) over the documents that are not masked.

    scores, teacher: [B, N], both scaled; masked: [B, N] or [N].
    """
    if masked is not None:
        # Not minus infinity: the difference of two of them would be no number.
        lowest = torch.finfo(scores.dtype).min / 4
        scores, teacher = scores.masked_fill(masked, lowest), teacher.masked_fill(masked, lowest)
    student, wanted = scores.log_softmax(dim=1), teacher.log_softmax(dim=1)
    return torch.nn.functional.kl_div(student, wanted, reduction="batchmean", log_target=True)
