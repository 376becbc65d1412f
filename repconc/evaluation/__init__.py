"""Runs and judgements -> measures, tests of significance, tables."""
