"""Benchmarks: what is planned, what is kept, and what is drawn from lines."""
