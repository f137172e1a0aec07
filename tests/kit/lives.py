"""Random lives: what people and pods do, one act after the other, under controllers that may be restarted."""

import random
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import AbstractAsyncContextManager, suppress
from typing import Any, Protocol

from kcm_cli.api.resource import Resource
from kcm_cli.rest.transport import Around, Request, Response, Transport
from tests.kit.world import World

Doc = dict[str, Any]
Act = tuple[str, Any]
"""What is done, and to what or how."""
RESTART = "restart"
PAUSES_S = (0.05, 0.3, 1.5, 12.0)
"""After an act: some steps of the controllers, and of kubelets."""


class Life(Protocol):
    def running(self) -> AbstractAsyncContextManager[None]:
        """The controllers."""

    async def act(self, act: Act) -> None: ...


async def live(life: Life, acts: Iterable[Act], rest: Callable[[float], Awaitable[None]], seed: int) -> None:
    """Do all acts. ``rest`` lets seconds pass."""
    left, rng = list(acts), random.Random(seed)
    while left:
        async with life.running():
            await rest(2)
            while left and (act := left.pop(0))[0] != RESTART:
                await life.act(act)
                await rest(rng.choice(PAUSES_S))


async def settles(world: World, check: Callable[[], None], problems: Sequence[str], limit_s: float) -> None:
    """Wait until a check holds. Raises its AssertionError, and one if there are problems."""
    for _ in range(int(limit_s / 10)):
        await world.wait(10)
        assert not problems
        with suppress(AssertionError):
            check()
            return
    check()


class Judged(Around):
    """Shows each request to ``look`` before it is sent. ``problems``: what that has found, and refusals as invalid."""

    def __init__(self, inner: Transport, look: Callable[[Request], str | None] = lambda request: None) -> None:
        super().__init__(inner)
        self._look = look
        self.problems: list[str] = []

    async def send(self, request: Request) -> Response:
        if problem := self._look(request):
            self.problems.append(problem)
        answer = await self._inner.send(request)
        if answer.status == 422:
            self.problems.append(f"{request.method} {request.path}: {answer.body!r}")
        return answer


def deleted_pod(request: Request) -> str:
    """The name of the pod that a request deletes; empty for other requests."""
    return request.path.rpartition("/")[2] if request.method == "DELETE" and "/pods/" in request.path else ""


def docs(world: World, kind: Resource[Any], namespace: str = "default") -> list[Doc]:
    """What there is of a kind at this moment, by name."""
    found = (stored.copy() for stored in world.server.store.list(kind.gvr, namespace))
    return sorted(found, key=lambda doc: doc["metadata"]["name"])


def living(world: World, pods: Resource[Any]) -> list[str]:
    """The names of the pods that are not being deleted."""
    return [pod["metadata"]["name"] for pod in docs(world, pods) if "deletionTimestamp" not in pod["metadata"]]


def available(pod: Doc) -> bool:
    ready = any(c["type"] == "Ready" and c["status"] == "True" for c in pod["status"].get("conditions", ()))
    return ready and "deletionTimestamp" not in pod["metadata"]


def image_of(pod: Doc) -> str:
    """The image of a pod, or of a template."""
    return pod["spec"]["containers"][0]["image"]  # type: ignore[no-any-return]
