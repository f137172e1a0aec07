"""kcm's controllers under perturbation: every write of every controller, each with one fault.

python -m tests.simulation.perturb                    all points of all stories (make perturb)
python -m tests.simulation.perturb --sample 50        so many of each story, chosen by --seed
python -m tests.simulation.perturb --replay 'ID'      one, step by step

What goes wrong at a write, by the names of ``kcm_cli.testing.perturb``, which has all but ``second`` and ``minute``:
unsent    the manager dies before it is sent, and another starts
crash     the manager dies after it was carried out
lost      it is carried out, and its answer does not come
refused   it is answered 500, without effect
conflict  somebody else changes the object just before it (where it names a version)
second    what the manager sees stands still from before it on, for a second
minute    the same for a minute
stale     the manager dies after it, and the next one starts with what was there before, for a minute
older     the same with what was there before the step
"""

import argparse
import asyncio
import logging
import os
import random
import re
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from kcm_cli.api.resource import GVR, Resource
from kcm_cli.engine.door import Send, Write
from kcm_cli.machinery import codec
from kcm_cli.machinery.codec import Doc
from kcm_cli.machinery.meta import PartialObject
from kcm_cli.planning.actions import MERGE
from kcm_cli.rest.transport import ConnectionLost, Response
from kcm_cli.sandbox import snapshots
from kcm_cli.sandbox.apiserver.entry.fault import Fault
from kcm_cli.sandbox.nodes.agents import NodeOptions
from kcm_cli.testing.perturb.states import State, counts_above, differences, masked, name_of, state_of
from tests.simulation.stories import EXPLAINED, STORIES
from tests.simulation.stories.kit import Story
from tests.simulation.world import NAMESPACE, World, simulate
from tests.unit.controllers.certificatesigningrequest_signing.conftest import write_ca

KINDS = ("unsent", "crash", "lost", "refused", "conflict", "second", "minute", "stale", "older")
BLIND_S = {"second": 1.0, "minute": 60.0, "stale": 60.0, "older": 60.0}
START_S, STEP_S, BETWEEN_S, LIMIT_S, QUIET_S = 5.0, 120.0, 15.0, 1800.0, 600.0
TIMES, MORE = 2, 4
"""Nothing is written more than twice as often as without and four times, nor tried in vain for ever."""
_TOUCHED = "perturb.kcm.dev/touched"
_ANY_WILL_DO = frozenset({_TOUCHED, "podCIDR", "podCIDRs", "images", "volumesInUse", "volumesAttached"})
"""What may be any: which range of addresses a node has, and whose images and volumes, since any pod may run there."""
_LEFT_OUT = ("events", "leases")
_UNCOMPARED = frozenset({"events", "leases", "podmetrics", "ipaddresses"})


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
    early: int = 0
    """So many of the spots are of the manager's start."""
    states: list[State] = field(default_factory=list)
    written: Counter[str] = field(default_factory=Counter)
    late: Counter[str] = field(default_factory=Counter)
    refused: Counter[str] = field(default_factory=Counter)
    """While all should be quiet."""
    made: Counter[str] = field(default_factory=Counter)
    trace: list[str] = field(default_factory=list)
    fired: bool = False


class Play:
    """One run of a story on a world."""

    def __init__(self, world: World, story: Story, point: Point | None, reference: Run | None) -> None:
        self.run = Run()
        self._world = world
        self._story = story
        self._point = point
        self._reference = reference
        self._counts: Counter[tuple[str, str, str, str]] = Counter()
        self._quiet = False
        self._settled_at = 0
        self._sees_at = 0.0
        self._managers: list[asyncio.Task[None]] = []
        self._base = snapshots.take(world.server.store)

    async def play(self) -> list[str]:
        """What is wrong at the end."""
        world = self._world
        for step in self._story.before:
            await step(world)
        self._base = snapshots.take(world.server.store)
        world.server.store.observers.append(self._observe)
        self._settled_at = world.server.store.revision
        self._start()
        await world.clock.sleep(START_S)
        self.run.early = len(self.run.spots)
        for step in self._story.steps:
            self._settled_at = world.server.store.revision
            await step(world)
            if wrong := await self._settled():
                return wrong
        await world.clock.sleep(STEP_S)
        await world.clock.sleep(max(0.0, self._sees_at + STEP_S - world.clock.monotonic()))
        self._quiet = True
        await world.clock.sleep(QUIET_S)
        self.run.states.append(self._state())
        running = self._managers[-1]
        if running.done():
            return [f"the manager has ended: {running.exception()!r}"]
        running.cancel()
        return [] if self._reference is None else list(self._wrong(self._reference))

    def _start(self) -> None:
        story = self._story
        self._managers.append(
            self._world.manager(
                only=tuple(story.only),
                interceptor=self._intercept,
                through=story.through,
                flags=tuple(flag.format(files=files()) for flag in story.flags),
                served=story.served,
            )
        )

    async def _settled(self) -> list[str]:
        """Wait until the cluster is as in the reference, or, there, for a while; what differs at last."""
        if self._reference is None:
            await self._world.clock.sleep(STEP_S)
            self.run.states.append(self._state())
            return []
        wanted, waited = self._reference.states[len(self.run.states)], 0.0
        while wrong := list(differences(wanted, self._state())):
            if waited >= LIMIT_S:
                return wrong
            waited += 5
            await self._world.clock.sleep(5)
        self.run.states.append(self._state())
        await self._world.clock.sleep(BETWEEN_S)
        return []

    def _state(self) -> State:
        state = state_of(self._world.server.store, self._base, NAMESPACE, uncompared=_UNCOMPARED)
        return {key: [placeless(one) for one in several] for key, several in state.items()}

    def _wrong(self, reference: Run) -> Iterator[str]:
        yield from self._story.check(self._world)
        yield from differences(reference.states[-1], self.run.states[-1])
        for key, count, once in counts_above(reference.late, self.run.late):
            yield f"{count} times {key} in ten minutes with nothing to do, and {once} without"
        for key, count, once in counts_above(reference.refused, self.run.refused):
            if count > once + MORE:
                yield f"{count} times {key} refused in ten minutes with nothing to do, and {once} without"
        for key, count, once in counts_above(reference.made, self.run.made):
            yield f"{key} was made {count} times, and {once} without"
        for key, count, once in counts_above(reference.written, self.run.written):
            if count > TIMES * once + MORE:
                yield f"{count} times {key}, and {once} without"

    def _observe(self, gvr: Any, event: Any) -> None:
        name = name_of(event.stored.doc, event.stored.namespace, NAMESPACE)
        if event.type == "ADDED" and "*" not in name and gvr.plural not in _UNCOMPARED:
            self.run.made[f"{gvr.plural} {name}"] += 1

    async def _intercept(self, write: Write, send: Send) -> Response:
        if write.resource in _LEFT_OUT:
            return await send(write.request)
        key = write.controller, write.verb, write.resource, self._name(write)
        self._counts[key] += 1
        spot = Spot(*key, self._counts[key])
        self.run.trace.append(f"{self._world.clock.monotonic():8.2f} {spot}")
        self.run.spots.append(spot)
        if write.verb != "create" and b'"resourceVersion"' in write.request.body:
            self.run.conflicting.add(spot)
        point = self._point
        if point is None or self.run.fired or point.spot != spot:
            return await self._counted(spot, write, send)
        self.run.fired = True
        self.run.trace.append(f"         {point.kind}")
        return await self._spoiled(point.kind, write, send)

    async def _counted(self, spot: Spot, write: Write, send: Send) -> Response:
        """Send a write, and count it if it has changed something."""
        before = self._world.server.store.revision
        answer = await send(write.request)
        if answer.status < 400:
            doc: Any = codec.decode_doc(answer.body)
            version = (doc.get("metadata") or {}).get("resourceVersion") or "0"
            changed = spot.verb == "delete" or int(version) > before
            self.run.written[_told(spot)] += changed
            self.run.late[_told(spot)] += self._quiet and changed
        else:
            self.run.refused[_told(spot)] += self._quiet
        return answer

    async def _spoiled(self, kind: str, write: Write, send: Send) -> Response:
        before = self._world.server.store.revision
        if kind == "refused":
            return _REFUSAL
        if kind == "conflict":
            await self._touch(write)
            return await send(write.request)
        if kind in ("second", "minute"):
            self._stale(kind, before)
            return await send(write.request)
        if kind != "unsent":
            await send(write.request)
        if kind == "lost":
            raise ConnectionLost(f"{write.request.method} {write.request.path}: no answer")
        seen = {"stale": before, "older": self._settled_at}.get(kind, 0)
        asyncio.get_running_loop().call_soon(self._replace, kind, seen)
        await asyncio.Event().wait()  # until the manager has died
        raise AssertionError

    def _replace(self, kind: str, seen: int) -> None:
        self._managers[-1].cancel()
        self._start()
        if seen:
            self._stale(kind, seen)

    def _stale(self, kind: str, revision: int) -> None:
        fault = Fault("stale", user_agent="kcm/*", revision=revision, for_s=BLIND_S[kind])
        self._sees_at = self._world.clock.monotonic() + BLIND_S[kind]
        self._world.server.api.faults.add(fault)

    async def _touch(self, write: Write) -> None:
        """Change the object that is written, so that it has another version."""
        version = write.request.path.split("/")[2 if not write.group else 3]
        gvr = GVR(write.group, version, write.resource.partition("/")[0])
        resource = Resource(gvr, "", PartialObject, bool(write.namespace))
        body: Doc = {"metadata": {"annotations": {_TOUCHED: "yes"}}}
        await self._world.client.patch(resource, write.namespace, write.name, body, content_type=MERGE)

    def _name(self, write: Write) -> str:
        if write.verb == "create" and not write.name:
            doc: Any = codec.decode_doc(write.request.body)
        else:
            version = write.request.path.split("/")[2 if not write.group else 3]
            served = self._world.server.api.catalog.find(write.group, version, write.resource.partition("/")[0])
            found = self._world.server.store.get(served.storage, write.namespace, write.name) if served else None
            doc = found.doc if found is not None else {"metadata": {"name": write.name}}
        return name_of(doc, write.namespace, NAMESPACE)


def _told(spot: Spot) -> str:
    return f"{spot.controller} {spot.verb} {spot.resource} {spot.name}"


_FAILURE: Doc = {"kind": "Status", "status": "Failure", "message": "on purpose", "reason": "InternalError", "code": 500}
_REFUSAL = Response(500, {"content-type": "application/json"}, codec.encode(_FAILURE))


def placeless(doc: Any) -> Any:
    """Endpoints without where they are, in an order that does not depend on that; nothing that was touched."""
    if isinstance(doc, list):
        return [placeless(one) for one in doc]
    if not isinstance(doc, dict):
        return doc
    doc = {key: placeless(one) for key, one in doc.items() if key not in _ANY_WILL_DO}
    if doc.get("annotations") == {}:
        del doc["annotations"]
    doc = {key: one for key, one in doc.items() if key not in ("addresses", "notReadyAddresses")} | {
        key: len(doc[key]) for key in ("addresses", "notReadyAddresses") if isinstance(doc.get(key), list)
    }
    doc = {key: {"kind": one.get("kind")} if key == "targetRef" else one for key, one in doc.items()}
    for key in ("endpoints", "subsets"):
        if isinstance(doc.get(key), list):
            doc[key] = sorted(doc[key], key=codec.encode_sorted)
    return doc


@cache
def _folder() -> "TemporaryDirectory[str]":
    folder = TemporaryDirectory()
    write_ca(Path(folder.name))
    return folder


def files() -> str:
    """Where ``ca.crt`` and ``ca.key`` are."""
    return _folder().name


def play(story: str, point: Point | None = None, reference: Run | None = None, seed: int = 1) -> tuple[Run, list[str]]:
    """Run a story; what the run was like, and what was wrong."""

    chosen = STORIES[story]

    async def whole(world: World) -> tuple[Run, list[str]]:
        one = Play(world, chosen, point, reference)
        wrong = await one.play()
        return one.run, wrong

    return simulate(seed, whole, NodeOptions(chosen.nodes))


def reference_of(story: str) -> Run:
    """What runs with different chance have in common, and the writes of one that waits for no longer than a perturbed
    one does: all that can come up. Raises ValueError where a controller writes nothing, or a run differs by itself."""
    first, second = (play(story, seed=seed)[0] for seed in (1, 2))
    missing = {f"{name}-controller" for name in STORIES[story].about} - {spot.controller for spot in first.spots}
    if missing:
        raise ValueError(f"{story}: nothing is written by {', '.join(sorted(missing))}")
    present = {key.partition(" ")[0].partition(".")[0] for state in first.states for key in state}
    empty = {spot for spot in first.spots if spot.verb == "deletecollection" and spot.resource not in present}
    shared = set(second.spots) - empty  # kinds of which there is nothing are emptied all alike
    reference = Run(
        states=[masked(*pair) for pair in zip(first.states, second.states, strict=True)],
        written=first.written | second.written,
        late=first.late | second.late,
        refused=first.refused | second.refused,
        made=first.made | second.made,
    )
    plain, wrong = play(story, reference=reference)
    if wrong:
        raise ValueError("\n  ".join([f"{story} with nothing gone wrong:", *wrong]))
    early = 0 if STORIES[story].start else plain.early
    reference.spots = [spot for spot in plain.spots[early:] if spot in shared]
    reference.conflicting = plain.conflicting
    return reference


def points_of(story: str, reference: Run) -> list[Point]:
    """All of a story."""
    found = [Point(story, kind, spot) for spot in reference.spots for kind in KINDS]
    return [point for point in found if point.kind != "conflict" or point.spot in reference.conflicting]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a story.

    idle: points that were not reached. found: for each point that failed, its name and what was wrong.
    explained: those of them that ``stories.EXPLAINED`` has. trace: what a replay did.
    """

    story: str
    points: int
    idle: Sequence[str]
    found: Sequence[str]
    explained: Sequence[str]
    trace: Sequence[str]
    cpu_s: float


def explained_of(point: str, wrong: Sequence[str]) -> tuple[Sequence[str], Sequence[str]]:
    """What was wrong and is a finding, and what is as it has to be."""
    known = [line for line in wrong if any(re.fullmatch(*pair) for pair in _explanations(point, line))]
    return [line for line in wrong if line not in known], [f"{point}: {line}" for line in known]


def _explanations(point: str, line: str) -> Iterator[tuple[str, str]]:
    return ((one.wrong, line) for one in EXPLAINED if re.fullmatch(one.point, point))


def perturbed(story: str, sample: int, seed: int, replay: str) -> Outcome:
    """Run a story at its points, or at some of them."""
    logging.disable(logging.CRITICAL)
    began = time.process_time()
    reference = reference_of(story)
    points = points_of(story, reference)
    if replay:
        points = [point for point in points if str(point) == replay]
    elif sample:
        points = random.Random(f"{seed}/{story}").sample(points, min(sample, len(points)))
    found: list[str] = []
    idle: list[str] = []
    explained: list[str] = []
    trace: list[str] = []
    for point in points:
        run, wrong = play(story, point, reference)
        if not run.fired:
            idle.append(f"{point} did not come up")
        wrong, known = explained_of(str(point), wrong)
        explained += known
        if wrong:
            found.append("\n  ".join([str(point), *wrong[:10]]))
        trace += run.trace if replay else ()
    return Outcome(story, len(points), idle, found, explained, trace, time.process_time() - began)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--story", choices=STORIES, action="append")
    parser.add_argument("--sample", type=int, default=0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--replay", default="")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    args = parser.parse_args()
    stories = [args.replay.partition("/")[0]] if args.replay else args.story or list(STORIES)
    points = found = explained = idle = 0
    cpu_s = 0.0
    with ProcessPoolExecutor(args.jobs) as pool:
        waiting = [pool.submit(perturbed, story, args.sample, args.seed, args.replay) for story in stories]
        for one in as_completed(waiting):
            outcome = one.result()
            points, found = points + outcome.points, found + len(outcome.found)
            idle, cpu_s = idle + len(outcome.idle), cpu_s + outcome.cpu_s
            explained += len(outcome.explained)
            counted = (
                f"{outcome.points:5} points  {len(outcome.found):3} not stood  {len(outcome.explained):3} explained"
            )
            print(f"{outcome.story:24}{counted}  {outcome.cpu_s:5.0f} s of CPU", flush=True)
            for line in (*outcome.idle, *outcome.found, *outcome.trace):
                print(line, flush=True)
    print(f"{points} points, {found} not stood, {explained} explained, {idle} did not come up, {cpu_s:.0f} s of CPU")
    return 1 if found or idle else 0


if __name__ == "__main__":
    sys.exit(main())
