"""Code that several controllers share."""
