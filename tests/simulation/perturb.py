"""kcm's own controllers under perturbation: every write of every controller, each time with one thing gone wrong.

python -m tests.simulation.perturb                    all points of all stories (make perturb)
python -m tests.simulation.perturb --sample 50        so many of them, chosen by --seed
python -m tests.simulation.perturb --replay 'ID'      one, told step by step

What goes wrong at a write:
before    the manager dies before it is sent, and another starts
after     the manager dies after it was carried out
lost      it is carried out, and its answer does not come
conflict  it is refused with 409 (where it names a version)
stale     what the manager sees stands still from before it on, for 15 s
old       the manager dies after it, and the next one starts with what was there before
"""

import argparse
import asyncio
import logging
import random
import sys
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from kcm_cli.engine.door import Send, Write
from kcm_cli.machinery import codec
from kcm_cli.rest.transport import ConnectionLost, Response
from kcm_cli.sandbox import snapshots
from kcm_cli.sandbox.apiserver.entry.fault import Fault
from kcm_cli.testing.perturb.states import UNCOMPARED, State, counts_above, differences, masked, name_of, state_of
from tests.simulation.stories import STORIES
from tests.simulation.world import NAMESPACE, World, simulate

KINDS = ("before", "after", "lost", "conflict", "stale", "old")
BLIND_S, LIMIT_S, QUIET_S = 15.0, 1800.0, 600.0
_LEFT_OUT = ("events", "leases")
Story = Callable[[World], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Spot:
    """The n-th such write of a controller."""

    controller: str
    verb: str
    resource: str
    name: str
    nth: int

    def __str__(self) -> str:
        return f"{self.controller}:{self.verb}:{self.resource}:{self.name}#{self.nth}"


@dataclass(frozen=True, slots=True)
class Point:
    """What goes wrong in a story at a spot."""

    story: str
    kind: str
    spot: Spot

    def __str__(self) -> str:
        return f"{self.story}/{self.kind}@{self.spot}"


@dataclass
class Run:
    """What a run was like."""

    spots: list[Spot] = field(default_factory=list)
    conflicting: set[Spot] = field(default_factory=set)
    states: list[State] = field(default_factory=list)
    late: Counter[str] = field(default_factory=Counter)
    made: Counter[str] = field(default_factory=Counter)
    told: list[str] = field(default_factory=list)
    fired: bool = False


class Play:
    """One run of a story on a world."""

    def __init__(self, world: World, point: Point | None, reference: Run | None) -> None:
        self.run = Run()
        self._world = world
        self._point = point
        self._reference = reference
        self._counts: Counter[tuple[str, str, str, str]] = Counter()
        self._quiet = False
        self._manager: asyncio.Task[None] | None = None
        self._base = snapshots.take(world.server.store)

    async def play(self, steps: Sequence[Story]) -> list[str]:
        """What is wrong at the end."""
        world = self._world
        world.server.store.observers.append(self._observe)
        self._manager = world.manager(interceptor=self._intercept)
        await world.clock.sleep(5)
        for step in steps:
            await step(world)
            if wrong := await self._settled():
                return wrong
        self._quiet = True
        await world.clock.sleep(QUIET_S)
        self.run.states.append(self._state())
        self._manager.cancel()
        return [] if self._reference is None else list(self._wrong(self._reference))

    async def _settled(self) -> list[str]:
        """Wait until the cluster is as in the reference, or, there, for a while; what differs at last."""
        if self._reference is None:
            await self._world.clock.sleep(120)
            self.run.states.append(self._state())
            return []
        wanted, waited = self._reference.states[len(self.run.states)], 0.0
        while wrong := list(differences(wanted, self._state())):
            if waited >= LIMIT_S:
                return wrong
            waited += 5
            await self._world.clock.sleep(5)
        self.run.states.append(self._state())
        await self._world.clock.sleep(BLIND_S)
        return []

    def _state(self) -> State:
        return state_of(self._world.server.store, self._base, NAMESPACE)

    def _wrong(self, reference: Run) -> Iterator[str]:
        yield from differences(reference.states[-1], self.run.states[-1])
        for key, count, once in counts_above(reference.late, self.run.late):
            yield f"{count} times {key} in ten minutes with nothing to do, and {once} without"
        for key, count, once in counts_above(reference.made, self.run.made):
            yield f"{key} was made {count} times, and {once} without"

    def _observe(self, gvr: Any, event: Any) -> None:
        name = name_of(event.stored.doc, event.stored.namespace, NAMESPACE)
        if event.type == "ADDED" and "*" not in name and gvr.plural not in UNCOMPARED:
            self.run.made[f"{gvr.plural} {name}"] += 1

    async def _intercept(self, write: Write, send: Send) -> Response:
        if write.resource in _LEFT_OUT:
            return await send(write.request)
        key = write.controller, write.verb, write.resource, self._name(write)
        self._counts[key] += 1
        spot = Spot(*key, self._counts[key])
        self.run.told.append(f"{self._world.clock.monotonic():8.2f} {spot}")
        self.run.spots.append(spot)
        if write.verb in ("update", "patch") and b'"resourceVersion"' in write.request.body:
            self.run.conflicting.add(spot)
        if self._quiet:
            self.run.late[f"{spot.controller} {spot.verb} {spot.resource} {spot.name}"] += 1
        point = self._point
        if point is None or self.run.fired or point.spot != spot:
            return await send(write.request)
        self.run.fired = True
        self.run.told.append(f"         {point.kind}")
        return await self._spoiled(point.kind, write, send)

    async def _spoiled(self, kind: str, write: Write, send: Send) -> Response:
        before = self._world.server.store.revision
        if kind == "conflict":
            return Response(409, {"content-type": "application/json"}, codec.encode(_CONFLICT))
        if kind == "stale":
            self._stale(before)
            return await send(write.request)
        if kind != "before":
            await send(write.request)
        if kind == "lost":
            raise ConnectionLost(f"{write.request.method} {write.request.path}: no answer")
        asyncio.get_running_loop().call_soon(self._replace, before if kind == "old" else 0)
        await asyncio.Event().wait()  # until the manager has died
        raise AssertionError

    def _replace(self, seen: int) -> None:
        assert self._manager is not None
        self._manager.cancel()
        self._manager = self._world.manager(interceptor=self._intercept)
        if seen:
            self._stale(seen)

    def _stale(self, revision: int) -> None:
        fault = Fault("stale", user_agent="kcm/*", revision=revision, for_s=BLIND_S)
        self._world.server.api.faults.add(fault)

    def _name(self, write: Write) -> str:
        if write.verb == "create" and not write.name:
            doc: Any = codec.decode_doc(write.request.body)
        else:
            version = write.request.path.split("/")[2 if not write.group else 3]
            served = self._world.server.api.catalog.find(write.group, version, write.resource.partition("/")[0])
            found = self._world.server.store.get(served.storage, write.namespace, write.name) if served else None
            doc = found.doc if found is not None else {"metadata": {"name": write.name}}
        return name_of(doc, write.namespace, NAMESPACE)


_CONFLICT = {
    "kind": "Status",
    "apiVersion": "v1",
    "metadata": {},
    "status": "Failure",
    "message": "the object has been modified; please apply your changes to the latest version and try again",
    "reason": "Conflict",
    "code": 409,
}


def play(story: str, point: Point | None = None, reference: Run | None = None, seed: int = 1) -> tuple[Run, list[str]]:
    """Run a story; what the run was like, and what was wrong."""

    async def whole(world: World) -> tuple[Run, list[str]]:
        one = Play(world, point, reference)
        wrong = await one.play(STORIES[story])
        return one.run, wrong

    return simulate(seed, whole)


def reference_of(story: str) -> Run:
    """What runs with different chance have in common."""
    first, second = (play(story, seed=seed)[0] for seed in (1, 2))
    shared = set(second.spots)
    return Run(
        spots=[spot for spot in first.spots if spot in shared],
        conflicting=first.conflicting,
        states=[masked(*pair) for pair in zip(first.states, second.states, strict=True)],
        late=first.late | second.late,
        made=first.made | second.made,
    )


def points_of(story: str, reference: Run) -> list[Point]:
    """All of a story."""
    found = [Point(story, kind, spot) for spot in reference.spots for kind in KINDS]
    return [point for point in found if point.kind != "conflict" or point.spot in reference.conflicting]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--story", choices=STORIES, action="append")
    parser.add_argument("--sample", type=int, default=0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--replay", default="")
    args = parser.parse_args()
    logging.disable(logging.CRITICAL)
    if args.replay:
        args.story = [args.replay.partition("/")[0]]
    references = {story: reference_of(story) for story in args.story or STORIES}
    points = [point for story, reference in references.items() for point in points_of(story, reference)]
    if args.replay:
        points = [point for point in points if str(point) == args.replay]
    elif args.sample:
        points = random.Random(args.seed).sample(points, min(args.sample, len(points)))
    began, found, idle = time.monotonic(), 0, 0
    for point in points:
        run, wrong = play(point.story, point, references[point.story])
        idle += not run.fired
        if wrong:
            found += 1
            print(f"{point}\n  " + "\n  ".join(wrong[:10]), flush=True)
        if args.replay:
            print("\n".join(run.told))
    took = time.monotonic() - began
    print(f"{len(points)} points, {found} not stood, {idle} did not come up, {took:.0f} s")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
