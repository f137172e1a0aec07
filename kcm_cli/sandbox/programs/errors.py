"""Why a program cannot be simulated."""

_LONGEST_SHOWN = 100


class Unknown(Exception):
    """The result depends on something that is not known, such as a file of the image."""


class TooMuch(Unknown):
    """The program exceeds a limit."""


class Unsupported(Unknown):
    """It uses a program or a construct of shells that is not simulated: the argument, or its first characters."""

    def __init__(self, what: str) -> None:
        super().__init__(what[:_LONGEST_SHOWN])


class Malformed(Unknown):
    """A script with an error."""


class Incomplete(Malformed):
    """A script that ends within a command."""


class Refused(Exception):
    """A file cannot be written."""
