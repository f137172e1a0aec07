"""Fuzzing of parsers: ``python -m tests.fuzz.run``."""
