"""The search for negatives against the plain one."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from repconc.kernel import kernel
from repconc.quantization.additive import AdditiveQuantizer
from repconc.quantization.product import ProductQuantizer
from repconc.training import negatives
from repconc.training.negatives import FixedCodes, FixedVectors, top, top_irrelevant
from repconc.training.picked import picked_products


@settings(deadline=None)
@given(
    N=st.integers(1, 40),
    B=st.integers(1, 9),
    n=st.integers(1, 50),
    at_a_time=st.integers(1, 50),
    seed=st.integers(0, 99),
)
def test_they_are_the_best_irrelevant_documents(N, B, n, at_a_time, seed):
    random = np.random.default_rng(seed)
    documents, queries = random.normal(size=(N, 6)).astype("f4"), random.normal(size=(B, 6)).astype("f4")
    relevant = [random.permutation(N)[: random.integers(0, 4)].astype(np.int64) for _ in range(B)]
    before = negatives.DOCUMENTS_AT_A_TIME, negatives.QUERIES_AT_A_TIME
    negatives.DOCUMENTS_AT_A_TIME, negatives.QUERIES_AT_A_TIME = at_a_time, 4
    try:
        found = top_irrelevant(
            torch.from_numpy(queries), FixedVectors(lambda: torch.from_numpy(documents)), relevant, n
        )
    finally:
        negatives.DOCUMENTS_AT_A_TIME, negatives.QUERIES_AT_A_TIME = before
    assert found.shape == (B, n)
    for query, known, row in zip(queries, relevant, found.numpy(), strict=True):
        order = [number for number in np.argsort(-(documents @ query)) if number not in known][:n]
        assert row.tolist() == order + [-1] * (n - len(order))


@settings(deadline=None)
@given(
    N=st.integers(1, 200), B=st.integers(1, 9), n=st.integers(1, 50), seed=st.integers(0, 99), additive=st.booleans()
)
@pytest.mark.skipif(kernel() is None, reason="the kernel was not built")
def test_codes_are_searched_by_the_native_scan_as_their_vectors_are(N, B, n, seed, additive):
    random = torch.Generator().manual_seed(seed)
    quantizer = ProductQuantizer(torch.randn(3, 16, 4, generator=random), 11)
    if additive:
        quantizer = AdditiveQuantizer(torch.randn(3, 16, 11, generator=random), 11, unit=True)
    documents = FixedCodes(quantizer, torch.randint(0, 16, (N, 3), generator=random, dtype=torch.uint8))
    queries = torch.randn(B, 11, generator=random)
    without = [torch.randperm(N, generator=random)[: row % 3].numpy() for row in range(B)]
    before, negatives.QUERIES_AT_A_TIME = negatives.QUERIES_AT_A_TIME, 4
    try:
        scores, numbers = top(queries, documents, n, without)
    finally:
        negatives.QUERIES_AT_A_TIME = before
    decoded = documents.gains[:, None] * quantizer.decode(documents.codes.long()).detach()
    plain, _ = top(queries, FixedVectors(lambda: decoded), n, without)
    np.testing.assert_allclose(scores, plain, atol=1e-5)
    products = queries @ decoded.T
    torch.testing.assert_close(torch.cat(list(documents.blocks())).detach(), decoded)
    torch.testing.assert_close(
        documents.scores(queries, torch.arange(N).expand(B, -1)).detach(), products, atol=1e-4, rtol=1e-4
    )
    for row in range(B):
        kept = numbers[row] >= 0
        assert not set(numbers[row].tolist()) & set(without[row].tolist())
        assert len(set(numbers[row][kept].tolist())) == kept.sum()
        np.testing.assert_allclose(products[row][numbers[row][kept]], scores[row][kept], atol=1e-5)


@pytest.mark.parametrize("spoiled", ["query", "codebook"])
def test_what_is_no_number_ends_in_no_error_here(spoiled):
    """The loss will show it, with a sentence that says what to do."""
    quantizer, queries = ProductQuantizer(torch.ones(2, 4, 3), 6), torch.ones(2, 6)
    with torch.no_grad():
        (queries if spoiled == "query" else quantizer.codebooks).view(-1)[0] = torch.nan
    assert top(queries, FixedCodes(quantizer, torch.zeros(5, 2, dtype=torch.uint8)), 3)[1].shape == (2, 3)


def test_products_with_documents_of_their_own_have_the_gradients_of_the_plain_ones():
    torch.manual_seed(0)
    vectors, numbers = torch.randn(20, 6, dtype=torch.float64), torch.randint(20, (5, 7))
    queries = torch.randn(5, 6, dtype=torch.float64, requires_grad=True)
    plain = torch.einsum("bd,bnd->bn", queries, vectors[numbers])
    torch.testing.assert_close(picked_products(queries, vectors, numbers), plain)
    torch.autograd.gradcheck(lambda some: picked_products(some, vectors, numbers), (queries,))
    assert picked_products(queries[:0], vectors, numbers[:0]).shape == (0, 7)
