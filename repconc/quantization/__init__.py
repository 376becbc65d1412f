"""Vectors -> codes, in training: the quantizer, its constraint, its warm-up."""
