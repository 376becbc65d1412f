"""Data sets of every form -> one RetrievalDataset."""
