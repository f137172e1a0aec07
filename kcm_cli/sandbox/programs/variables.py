"""The variables of a shell, and its parameters."""

from collections.abc import Mapping

import msgspec
from msgspec.structs import replace

from kcm_cli.sandbox.programs.errors import TooMuch, Unsupported
from kcm_cli.sandbox.programs.filesystem import PER_CHARACTER, Work

_LONGEST_VALUE = 1 << 17
"""The limit for a value. Linux starts no program with a longer one."""


class Variables(msgspec.Struct):
    """The variables of one shell.

    env: those at its start; None: the value is unknown. values: those that its script has set.
    mine: those that it may set, so that they are not set before.
    exported: the names of those in ``values`` that programs get. given: those of one command. parameters: ``$1`` and so
    on. zero: ``$0``.
    """

    env: Mapping[str, str | None]
    work: Work
    values: dict[str, str | None] = msgspec.field(default_factory=dict)
    mine: frozenset[str] = frozenset()
    exported: frozenset[str] = frozenset()
    given: Mapping[str, str | None] = msgspec.field(default_factory=dict)
    parameters: tuple[str | None, ...] = ()
    zero: str = "sh"

    def copied(self) -> "Variables":
        """A copy for a subshell."""
        return replace(self, values=dict(self.values))

    def inherited(self) -> "Variables":
        """The variables of a shell that this one starts."""
        return Variables(self.passed_on(), self.work, mine=self.mine | self.values.keys())

    def passed_on(self) -> dict[str, str | None]:
        """The variables in a program's environment; None: the value is unknown."""
        self.work.spend(len(self.env) + len(self.values))
        found = {name: self.values.get(name, value) for name, value in self.env.items()}
        shared = {name: value for name, value in self.values.items() if name in self.exported}
        return {**found, **shared, **self.given}

    def has(self, name: str) -> bool:
        """Whether it is set."""
        return name in self.values or name in self.env

    def get(self, name: str) -> str | None:
        """The value, empty if it is not set; None if it is unknown."""
        found = self.values[name] if name in self.values else self.env.get(name, "")
        if found:
            self.work.spend(len(found) * PER_CHARACTER)
        return found

    def put(self, name: str, value: str | None) -> None:
        """Set a variable. Raises TooMuch, Unsupported."""
        if name == "IFS":
            raise Unsupported("IFS")
        if value is not None and len(value) > _LONGEST_VALUE:
            raise TooMuch
        self.values[name] = value
