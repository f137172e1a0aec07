"""Why a program cannot be simulated."""


class Unknown(Exception):
    """The result depends on something that is not known, such as a file of the image."""


class TooMuch(Unknown):
    """The program exceeds a limit."""


class Malformed(Unknown):
    """A script with an error, or with syntax that is not known here."""


class Incomplete(Malformed):
    """A script that ends within a command."""


class Refused(Exception):
    """A file cannot be written."""
