"""The search for negatives against the plain one."""

import numpy as np
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from repconc.training import negatives
from repconc.training.negatives import FixedVectors, top_irrelevant


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
