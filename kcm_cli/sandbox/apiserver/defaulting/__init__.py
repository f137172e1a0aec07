"""Defaulting that several kinds share."""
