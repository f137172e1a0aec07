"""The lines of a container's log, and the selection of a request.

upstream: pkg/kubelet/kuberuntime/logs/logs.go
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from urllib.parse import urlencode

from kcm_cli.machinery.times import format_time, parse_time
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
    text = urlencode(sorted((flags | given).items()))
    return text and f"?{text}"


class LogOptions:
    """Which lines of a log a client requests, and in which form (PodLogOptions)."""

    def __init__(self, query: Mapping[str, str], now: datetime) -> None:
        """``query``: of a valid request."""
        self._tail, self._limit = integer(query, "tailLines"), integer(query, "limitBytes")
        since_s = integer(query, "sinceSeconds")
        since = parse_time(query["sinceTime"]) if query.get("sinceTime") else None
        self._since = now - timedelta(seconds=since_s) if since_s is not None else since
        self._stamped = is_true(query, "timestamps")

    @property
    def full(self) -> bool:
        """Whether ``limitBytes`` is reached."""
        return self._limit == 0

    def past(self, lines: Sequence[tuple[datetime, str]]) -> bytes:
        """The selected lines of those written until now."""
        chosen = [line for line in lines if self._since is None or line[0] >= self._since]
        if self._tail is not None:
            chosen = chosen[max(0, len(chosen) - self._tail) :]
        return self._limited(b"".join(self._written(*line) for line in chosen))

    def line(self, at: datetime, text: str) -> bytes:
        """A line that is written later."""
        return self._limited(self._written(at, text))

    def _written(self, at: datetime, text: str) -> bytes:
        stamp = f"{format_time(at).removesuffix('Z')}.000000000Z " if self._stamped else ""
        return f"{stamp}{text}\n".encode("utf-8", "surrogateescape")

    def _limited(self, data: bytes) -> bytes:
        if self._limit is None:
            return data
        cut = data[: self._limit]
        self._limit -= len(cut)
        return cut


def whole_lines(output: Iterable[Written]) -> Iterator[tuple[float, str]]:
    """The output of a program as lines, with seconds from its start."""
    rest = ""
    at_s = 0.0
    for at_s, text, _ in output:
        *lines, rest = (rest + text).split("\n")
        yield from ((at_s, line) for line in lines)
    if rest:
        yield at_s, rest
