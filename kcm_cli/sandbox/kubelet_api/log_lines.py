"""The lines of a container's log, and the selection of a request.

upstream: pkg/kubelet/kuberuntime/logs/logs.go
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from urllib.parse import urlencode

from kcm_cli.machinery.times import format_micro_time, format_time, parse_time
from kcm_cli.sandbox.apiserver.registry.options import integer, truthy
from kcm_cli.sandbox.programs.execution import Written

_FLAGS, _VALUES = ("follow", "previous", "timestamps"), ("limitBytes", "sinceSeconds", "sinceTime", "tailLines")


def is_true(query: Mapping[str, str], name: str) -> bool:
    """A boolean parameter, which is false if it is absent."""
    return truthy(query.get(name, "0"))


def parameters(query: Mapping[str, str]) -> str:
    """The options of a request in the API server's request to a kubelet, with the question mark."""
    flags = {name: "true" for name in _FLAGS if is_true(query, name)}
    given = {name: query[name] for name in _VALUES if query.get(name)}
    if (since := _since_time(query)) is not None:
        given["sinceTime"] = format_time(since)
    text = urlencode(sorted((flags | given).items()))
    return text and f"?{text}"


def _since_time(query: Mapping[str, str]) -> datetime | None:
    """The time, of which the API server passes on whole seconds only."""
    text = query.get("sinceTime")
    return parse_time(text).replace(microsecond=0) if text else None


def _before(now: datetime, seconds: int) -> datetime:
    """The time a number of seconds ago, not before the year 1."""
    first = datetime.min.replace(tzinfo=now.tzinfo)
    return now - timedelta(seconds=min(seconds, (now - first) // timedelta(seconds=1)))


class LogOptions:
    """Which lines of a log a client requests, and in which form (PodLogOptions)."""

    def __init__(self, query: Mapping[str, str], now: datetime) -> None:
        """``query``: of a valid request."""
        self._tail, self._limit = integer(query, "tailLines"), integer(query, "limitBytes")
        since_s = integer(query, "sinceSeconds")
        self._since = _since_time(query) if since_s is None else _before(now, since_s)
        self._stamped = is_true(query, "timestamps")

    @property
    def full(self) -> bool:
        """Whether ``limitBytes`` is reached."""
        return self._limit == 0

    def past(self, lines: Sequence[tuple[datetime, str]]) -> bytes:
        """The selected lines, with their ends, of those written until now."""
        chosen = [line for line in lines if self._since is None or line[0] >= self._since]
        if self._tail is not None:
            chosen = chosen[max(0, len(chosen) - self._tail) :]
        return self._limited(b"".join(self._written(*line) for line in chosen))

    def line(self, at: datetime, text: str) -> bytes:
        """A line, with its end, that is written later."""
        return self._limited(self._written(at, text))

    def _written(self, at: datetime, text: str) -> bytes:
        stamp = f"{format_micro_time(at).removesuffix('Z')}000Z " if self._stamped else ""
        return f"{stamp}{text}".encode("utf-8", "surrogateescape")

    def _limited(self, data: bytes) -> bytes:
        if self._limit is None:
            return data
        cut = data[: self._limit]
        self._limit -= len(cut)
        return cut


def whole_lines(output: Iterable[Written], end_s: float | None) -> Iterator[tuple[float, str]]:
    """The output of a program as lines with their ends, and seconds from its start.

    end_s: when the program ends; None: it runs. Like a container runtime, a line is written when it has ended: what
    follows the last end of a line is written when the program ends.
    """
    rest: list[str] = []
    for at_s, text, _ in output:
        *lines, last = text.split("\n")
        if lines:
            lines[0] = "".join([*rest, lines[0]])
            rest.clear()
        rest.append(last)
        yield from ((at_s, f"{line}\n") for line in lines)
    if end_s is not None and (line := "".join(rest)):
        yield end_s, line


def lines_of(text: str) -> list[str]:
    """The lines of a text with their ends, also of the last one."""
    return [f"{line}\n" for line in text.removesuffix("\n").split("\n")] if text else []
