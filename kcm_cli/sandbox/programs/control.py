"""How the commands of a shell end, and where their output goes."""

import msgspec

from kcm_cli.sandbox.programs.errors import Unknown


class Ended(Exception):
    """The shell has exited, or waits forever."""


class Failed(Ended):
    """An error has ended the shell, unless it is interactive."""


class Jump(Exception):
    """``break`` or ``continue`` (goes_on), out of or in the n-th loop."""

    def __init__(self, levels: int, *, goes_on: bool) -> None:
        super().__init__(levels)
        self.levels = levels
        self.goes_on = goes_on


class Returned(Exception):
    """A function has returned."""


class NotFound(Unknown):
    """A program that is not known. ``word``: as it was written."""

    def __init__(self, word: str) -> None:
        super().__init__(word)
        self.word = word


class Captured(msgspec.Struct):
    """Output that a shell reads. ``known``: whether all of it is known."""

    texts: list[str] = msgspec.field(default_factory=list)
    known: bool = True

    def text(self) -> str | None:
        """The output; None if it is unknown."""
        return "".join(self.texts) if self.known else None
