"""The error that ends a manager."""


class RunError(Exception):
    """The manager cannot start or go on. The message names the cause in one line; the exit code is 1."""
