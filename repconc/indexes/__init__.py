"""Vectors or codes -> ids. Nothing here needs torch."""
