"""Tensors -> a scalar. Pure functions that import nothing of ours."""
