"""Vectors that people already have -> a learned index, with whatever else they have: queries, labels, or nothing."""
