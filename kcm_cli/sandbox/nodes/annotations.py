"""The annotations of pods that say how their containers behave (docs/sandbox.md).

``sandbox.kcm.dev/NAME`` applies to all regular containers of a pod, ``sandbox.kcm.dev/NAME.CONTAINER`` to one container
of any kind. ``rules`` adds those of rules; ``script``, ``usage`` and ``kubelet_api`` read them.
"""

import math
from collections.abc import Callable, Mapping
from typing import TypeVar

from kcm_cli.machinery.durations import parse_duration
from kcm_cli.machinery.errors import FormatError
from kcm_cli.sandbox.requests import CPU, MEMORY

T = TypeVar("T")

PREFIX = "sandbox.kcm.dev/"
START_DELAY, READY_DELAY, RUN_TIME, STOP_TIME = "start-delay", "ready-delay", "run-time", "stop-time"
EXIT_CODE, EXIT_REASON, RESTARTS = "exit-code", "exit-reason", "restarts"
PULL_ERROR, FAILING_PROBES = "pull-error", "failing-probes"
LOGS, EXEC, EXEC_CODE, FORWARD = "logs", "exec", "exec-code", "forward"
OF_PODS = frozenset((START_DELAY, FORWARD))
"""Those of the whole pod."""

NEVER = "never"
"""The value of a duration without end."""
MOST_EXIT_CODE = 2**31 - 1
"""The largest one that the API accepts."""


def seconds_of(text: str) -> float:
    """Seconds of a duration such as ``1m30s``; infinite for ``never``. Raises FormatError."""
    return math.inf if text == NEVER else max(0.0, parse_duration(text))


def number_of(text: str) -> int:
    """A number from 0 to MOST_EXIT_CODE. Raises FormatError."""
    if text.isascii() and text.isdigit() and len(text) <= len(str(MOST_EXIT_CODE)) and int(text) <= MOST_EXIT_CODE:
        return int(text)
    raise FormatError(f"{text!r} is not a whole number from 0 to {MOST_EXIT_CODE}")


PARSERS: Mapping[str, Callable[[str], object]] = {
    **dict.fromkeys((START_DELAY, READY_DELAY, RUN_TIME, STOP_TIME), seconds_of),
    **dict.fromkeys((EXIT_CODE, RESTARTS, EXEC_CODE), number_of),
    **dict.fromkeys((EXIT_REASON, PULL_ERROR, FAILING_PROBES, CPU, MEMORY, LOGS, EXEC, FORWARD), str),
}
"""All names, with the parsers of their values."""


class Annotations:
    """The values of one pod, by name and scope: a container's name, or one with ``*`` for which the pod's annotation is
    the default. An invalid value counts as absent, and is one of the ``problems``."""

    def __init__(self, annotations: Mapping[str, str]) -> None:
        self._values = {k[len(PREFIX) :]: v for k, v in annotations.items() if k.startswith(PREFIX)}
        self.problems: list[str] = []

    def text(self, name: str, scope: str) -> str:
        """A value as it is; empty if there is none."""
        values = self._values
        if not values:
            return ""
        own = values.get(f"{name}.{scope.rstrip('*')}", "") if scope else ""
        if own or (scope and not scope.endswith("*")):
            return own
        return values.get(name, "")

    def seconds(self, name: str, scope: str, default: float) -> float:
        """A duration in seconds; infinite for ``never``."""
        read = self._read(name, scope, seconds_of)
        return default if read is None else read

    def number(self, name: str, scope: str) -> int | None:
        """A number; None if there is none."""
        return self._read(name, scope, number_of)

    def _read(self, name: str, scope: str, parse: Callable[[str], T]) -> T | None:
        text = self.text(name, scope)
        try:
            return parse(text) if text else None
        except FormatError as error:
            problem = f"{PREFIX}{name}: {error}"
            if problem not in self.problems:
                self.problems.append(problem)
            return None
