"""Reading a manager: metrics, health and the lease."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any, cast

import pytest

from kcm_cli.api.coordination import Lease, LeaseSpec
from kcm_cli.rest.client import Client
from kcm_cli.rest.errors import NotFound
from kcm_cli.rest.transport import Request, Response, Stream, Transport, Unreachable
from kcm_cli.top import figures, source
from kcm_cli.top.source import Held, ReadError, Reading, Source
from tests.kit.faults import Answering

NOW = datetime(2026, 1, 1, 0, 0, 10, tzinfo=UTC)
METRICS = b'workqueue_depth{name="job"} 3\n'


class Manager(Answering):
    """Answers as a manager."""

    def __init__(self, metrics: bytes = METRICS, status: int = 200, health: bytes = b"[+]a ok\n[-]b failed\n") -> None:
        self.answers = {"/metrics": (status, metrics), "/healthz": (500, health)}
        self.down = False

    async def send(self, request: Request) -> Response:
        if self.down:
            raise Unreachable("connection refused")
        status, body = self.answers[request.path]
        return Response(status, {}, body)


class Leases:
    """The API server of the lease."""

    def __init__(self, answer: Lease | Exception) -> None:
        self._answer = answer

    async def get(self, *_: object) -> Lease:
        if isinstance(self._answer, Exception):
            raise self._answer
        return self._answer


def reading(manager: Manager, lease: Lease | Exception | None = None) -> Reading:
    leases = None if lease is None else (cast(Client, Leases(lease)), "kube-system", "kcm")
    transport = cast(Transport, manager)
    return asyncio.run(Source(transport, "https://m", monotonic=lambda: 1.0, now=lambda: NOW, leases=leases).read())


def test_a_manager_is_read() -> None:
    found = reading(Manager(), Lease(spec=LeaseSpec(holder_identity="me", renew_time="2026-01-01T00:00:08.5Z")))
    assert (found.figures.queues["job"].waiting, found.unhealthy) == (3, ("[-]b failed",))
    assert found.held == Held("kube-system/kcm", "me", 1.5)


@pytest.mark.parametrize(
    ("lease", "held"),
    [
        (Lease(spec=LeaseSpec(holder_identity="me", renew_time="soon")), Held("kube-system/kcm", "me")),
        (Lease(), Held("kube-system/kcm")),
        (NotFound(404, "NotFound", "no such lease"), Held("kube-system/kcm", problem="no such lease")),
        (Unreachable("refused"), Held("kube-system/kcm", problem="refused")),
    ],
)
def test_a_lease_that_cannot_be_read_does_not_end_the_view(lease: Any, held: Held) -> None:
    assert reading(Manager(), lease).held == held


@pytest.mark.parametrize(
    ("status", "text"), [(401, "does not know these credentials"), (403, "nonResourceURL /metrics"), (404, "HTTP 404")]
)
def test_a_refusal_says_what_to_do(status: int, text: str) -> None:
    with pytest.raises(ReadError, match=text):
        reading(Manager(status=status))


def test_no_manager_and_no_metrics(monkeypatch: pytest.MonkeyPatch) -> None:
    manager = Manager()
    manager.down = True
    with pytest.raises(ReadError, match="does the manager run"):
        reading(manager)
    with pytest.raises(ReadError, match="no metrics of a controller manager"):
        reading(Manager(b"\xff"))
    monkeypatch.setattr(figures, "MOST_BYTES", 10)
    with pytest.raises(ReadError, match="more than"):
        reading(Manager())


@pytest.mark.parametrize(
    ("status", "told"), [(200, ()), (403, ("/healthz: HTTP 403",)), (500, ("/healthz: HTTP 500",))]
)
def test_a_health_without_lines(status: int, told: tuple[str, ...]) -> None:
    """As a proxy answers, or one who may read /metrics only."""
    manager = Manager()
    manager.answers["/healthz"] = (status, b"<html>no</html>")
    assert reading(manager).unhealthy == told


@pytest.mark.parametrize("path", ["/metrics", "/healthz"])
def test_a_body_without_end_is_left_at_its_limit(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    sent = [0]

    class Endless(Manager):
        @asynccontextmanager
        async def stream(self, request: Request) -> AsyncIterator[Stream]:
            async def parts() -> AsyncIterator[bytes]:
                while True:
                    sent[0] += 1
                    yield b"# a line of metrics\n"

            if request.path == path:
                yield Stream(200, {}, parts())
                return
            async with super().stream(request) as answer:
                yield answer

    monkeypatch.setattr(figures, "MOST_BYTES", 100)
    monkeypatch.setattr(source, "_MOST_HEALTH", 100)
    with pytest.raises(ReadError, match="more than"):
        reading(Endless())
    assert sent == [6]
