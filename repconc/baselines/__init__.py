"""Compared methods, one per file."""
