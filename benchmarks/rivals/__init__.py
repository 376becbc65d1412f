"""Rivals that we had to write ourselves, as good as we can make them in their own form, with the same threads."""
