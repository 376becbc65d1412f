"""The paper's gradient policy by hand (eq. 9, 10), for quantizers of either structure."""

import torch
from torch import Tensor

from repconc.losses.clustering import clustering
from repconc.losses.ranking import ranking
from repconc.quantization.quantizer import Constraint, Quantizer


def gradients_of_a_step(quantizer: Quantizer, documents: Tensor) -> tuple[Tensor, Tensor]:
    """Codes [12, M] of a batch of 12 documents, and dL/d(d^) [12, D], which goes to the codewords.

    dL/dd = dLr/d(d^) + lambda dLm/dd is compared here, and the gradient of the queries.
    """
    queries = torch.randn(6, documents.shape[1], requires_grad=True)
    documents.requires_grad_()
    positives, weight = torch.arange(6), 0.3
    codes = quantizer.assign(documents, Constraint(epsilon=0.1))
    quantized = quantizer.straight_through(documents, codes)
    loss = ranking(queries, quantized, positives) + weight * clustering(documents, quantizer.decode(codes))
    loss.backward()

    decoded = quantizer.decode(codes).detach()
    probabilities = (queries.detach() @ decoded.T).softmax(dim=1)
    probabilities[torch.arange(6), positives] -= 1
    from_ranking = probabilities.T @ queries.detach() / 6  # dLr / d(d^): [N, D]
    from_clustering = 2 * weight * (documents.detach() - decoded) / 12  # lambda dLm / dd; minus it for d^
    torch.testing.assert_close(documents.grad, from_ranking + from_clustering)
    torch.testing.assert_close(queries.grad, probabilities @ decoded / 6)
    return codes, from_ranking - from_clustering
