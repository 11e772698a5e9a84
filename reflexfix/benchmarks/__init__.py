"""Benchmarks in their published forms, read row by row into problems."""
