"""How codes lie on disk: list after list, each in blocks of 64 documents with byte m of all 64 side by side.

    block of r documents:   c[0][0..r-1]  c[1][0..r-1]  ...  c[M-1][0..r-1]

One load then brings 64 codes to look up in the same table. The last block of a list holds fewer documents and is not
padded, so that n documents take n * M bytes.
"""

import numpy as np

DOCUMENTS = 64


def to_blocks(codes: np.ndarray) -> np.ndarray:
    """The codes of one list, [n, M] -> [n * M] bytes."""
    n, M = codes.shape
    whole = n - n % DOCUMENTS
    blocks = codes[:whole].reshape(-1, DOCUMENTS, M).transpose(0, 2, 1)
    return np.concatenate([blocks.reshape(-1), codes[whole:].T.reshape(-1)])


def scores_of(content: np.ndarray, start: int, stop: int, tables: np.ndarray, first: int) -> np.ndarray:
    """[n, 2]: for the list at positions start .. stop - 1, the sums of table entries [M, K] in the order of the bytes.

    Those of the first bytes, and those of all.
    """
    M, n = len(tables), stop - start
    whole = n - n % DOCUMENTS
    middle = (start + whole) * M
    blocks = content[start * M : middle].reshape(-1, M, DOCUMENTS)
    rest = content[middle : stop * M].reshape(M, -1)
    sums, last = np.zeros((len(blocks), DOCUMENTS), np.float32), np.zeros(n - whole, np.float32)
    scores = []
    for m in range(M):
        sums += tables[m][blocks[:, m]]
        last += tables[m][rest[m]]
        if m + 1 == first:
            scores.append(np.concatenate([sums.reshape(-1), last]))
    return np.stack([*scores, np.concatenate([sums.reshape(-1), last])], axis=1)


def codes_at(content: np.ndarray, offsets: np.ndarray, positions: np.ndarray, M: int) -> np.ndarray:
    """[n, M]: the codes at some positions. offsets: where each list begins, and where the last one ends."""
    lists = np.searchsorted(offsets, positions, side="right") - 1
    starts, stops = offsets[lists], offsets[lists + 1]
    blocks = starts + (positions - starts) // DOCUMENTS * DOCUMENTS
    rows = np.minimum(DOCUMENTS, stops - blocks)
    places = (blocks * M + positions - blocks)[:, None] + np.arange(M)[None] * rows[:, None]
    return np.asarray(content[places])
