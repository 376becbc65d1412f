"""BM25 (Robertson et al., 1994), the keyword search that dense retrieval has to beat, by the bm25s package.

Words are lower-cased, English stop words removed, the rest stemmed (Snowball); k1 and b are Lucene's.
"""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from repconc.errors import RepconcError, import_extra
from repconc.indexes.top import best
from repconc.records import Document, Hit

NAME = "BM25"
K1, B = 1.2, 0.75


class BM25:
    """A keyword index in memory."""

    def __init__(self, documents: Iterable[Document]) -> None:
        self._bm25s = import_extra("bm25s", extra="bench")
        self._stemmer = import_extra("Stemmer", extra="bench").Stemmer("english")
        self.ids: list[str] = []
        texts = []
        for document in documents:
            self.ids.append(document.id)
            texts.append(document.full_text)
        if not texts:
            raise RepconcError("There are no documents to search.")
        self._index = self._bm25s.BM25(k1=K1, b=B, method="lucene")
        tokens = self._tokenize(texts, return_ids=True)
        if not any(tokens.ids):
            raise RepconcError("No document holds a word that is not a stop word; there is nothing to index.")
        self._index.index(tokens, show_progress=False)

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def nbytes(self) -> int:
        """The postings and the vocabulary: all that must be in memory to search, without ids and texts."""
        postings = sum(array.nbytes for array in self._index.scores.values() if isinstance(array, np.ndarray))
        return postings + sum(len(word.encode()) + 4 for word in self._index.vocab_dict)

    def search(self, texts: Sequence[str], k: int = 10) -> list[list[Hit]]:
        """The k best documents of each question; fewer, or none, where fewer share a word with it."""
        return [self._search(words, k) for words in self._tokenize(texts, return_ids=False)]

    def _search(self, words: list[str], k: int) -> list[Hit]:
        known = self._index.get_tokens_ids(words)
        if not known:
            return []
        scores = self._index.get_scores_from_ids(known)
        scores[scores <= 0] = -np.inf
        return best(scores, self.ids, k)

    def _tokenize(self, texts: Sequence[str], return_ids: bool) -> Any:
        return self._bm25s.tokenize(
            list(texts), stopwords="en", stemmer=self._stemmer, return_ids=return_ids, show_progress=False
        )
