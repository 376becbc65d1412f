"""Measurements. Every result is one JSON line in results/, with the revision and the versions it was made with."""
