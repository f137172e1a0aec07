"""Why a manager could not start, or had to end."""


class RunError(Exception):
    """The process cannot go on. The message is one clear line that names the cause; the exit code is 1."""
