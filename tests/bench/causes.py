"""What the record of causes costs: ``python -m tests.bench.causes``. Microseconds of CPU, the best of five runs."""

import asyncio
import time
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager

from kcm_cli.api.core import PODS, Pod
from kcm_cli.component.clock import RealClock
from kcm_cli.engine.door import Door
from kcm_cli.machinery import codec
from kcm_cli.machinery.meta import ObjectMeta
from kcm_cli.rest.client import Client
from kcm_cli.rest.ratelimit import Unlimited
from kcm_cli.rest.transport import Request, Response, Stream
from kcm_cli.runtime import causes
from kcm_cli.runtime.cause_ring import CauseRing
from kcm_cli.runtime.causes import MODIFIED, Work, set_working
from kcm_cli.runtime.workqueue import WorkQueue

MANY, RUNS = 500, 100
_ENV = [{"name": f"VARIABLE_{number}", "value": "x" * 40} for number in range(20)]
_POD = codec.encode(
    {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "web-7d9c-x", "namespace": "shop", "uid": "5" * 36, "resourceVersion": "123456"},
        "spec": {"containers": [{"name": f"c{number}", "image": "i", "env": _ENV} for number in range(2)]},
    }
)


class _Server:
    async def send(self, request: Request) -> Response:
        return Response(201, {}, _POD)

    def stream(self, request: Request) -> AbstractAsyncContextManager[Stream]:
        raise NotImplementedError

    async def close(self) -> None: ...


async def _keys(caused: bool) -> float:
    clock = RealClock()
    queue = WorkQueue("q", clock, caused=caused)
    objects = [Pod(metadata=ObjectMeta(f"web-{n}", "shop", "5" * 36, str(n))) for n in range(MANY)]
    keys = [obj.key for obj in objects]
    started = time.process_time()
    for obj, key in zip(objects, keys, strict=True):
        if caused:
            before = causes.tell((MODIFIED, PODS, obj, clock.monotonic))
        queue.add(key)
        if caused:
            causes.tell(before)
        queue.done(await queue.get())
    return time.process_time() - started


async def _writes(caused: bool, most: int = MANY) -> float:
    """most: writes of a sync."""
    clock = RealClock()
    ring = CauseRing(clock) if caused else None
    door = Door(Client(_Server(), limiter=Unlimited(), user_agent="b", clock=clock), "c", ring=ring)
    if ring is not None:
        change = causes.Change(MODIFIED, "apps", "ReplicaSet", "shop/web", "5" * 36, "1", 0.0)
    started = time.process_time()
    for number in range(MANY):
        if ring is not None and number % most == 0:
            why = causes.Causes([change])
            set_working(
                Work(controller="c", queue="q", kind="ReplicaSet", key="shop/web", at=0.0, causes=why, note=ring.note)
            )
        await door.create(PODS, "shop", _POD, reason="too few replicas")
    return time.process_time() - started


async def _syncs(caused: bool) -> float:
    return await _writes(caused, 1)


def _best(measure: Callable[[bool], object], caused: bool) -> float:
    return min(asyncio.run(measure(caused)) for _ in range(RUNS)) / MANY * 1e6  # type: ignore[arg-type]  # both are coroutine functions


def main() -> None:
    for what, measure in (("queued key", _keys), ("write", _writes), ("write with a sync of its own", _syncs)):
        without, having = _best(measure, False), _best(measure, True)
        print(f"{what}: {having - without:.2f} us ({without:.2f} without, {having:.2f} with the record)")


if __name__ == "__main__":
    main()
