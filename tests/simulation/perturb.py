"""kcm's controllers under perturbation: a fault at each of their writes and of the changes that they see.

python -m tests.simulation.perturb                    all points of all stories (make perturb)
python -m tests.simulation.perturb --sample 50        so many of each story, chosen by --seed
python -m tests.simulation.perturb --replay 'ID'      one, with what was written

The engine and its faults are those of docs/perturbation.md. This is another host of them: a cluster on virtual time,
with a manager in place of an operator.
"""

import argparse
import asyncio
import logging
import os
import random
import re
import sys
import time
from collections.abc import Callable, Coroutine, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeVar

import msgspec

from kcm_cli.component.metrics import Registry
from kcm_cli.component.virtual import VirtualLoop
from kcm_cli.machinery import codec
from kcm_cli.sandbox import snapshots
from kcm_cli.sandbox.apiserver.entrance import Asked
from kcm_cli.sandbox.apiserver.security.certificates import Certificates
from kcm_cli.sandbox.nodes.agents import NodeOptions
from kcm_cli.sandbox.run import MANAGER
from kcm_cli.testing.perturb.campaign import TrialResult, judged
from kcm_cli.testing.perturb.host import Measure
from kcm_cli.testing.perturb.points import ALL_KINDS, Point, Spots, point_of
from kcm_cli.testing.perturb.record import Record, reference_of
from kcm_cli.testing.perturb.trial import Perturbed, Trial
from tests.kit.controlling import metric
from tests.kit.simulation import EPOCH, NAMESPACE, World
from tests.simulation.stories import EXPLAINED, STORIES
from tests.simulation.stories.kit import Story

START_S = 5.0
_ANY_WILL_DO = frozenset({"podCIDR", "podCIDRs", "images", "volumesInUse", "volumesAttached"})
"""What may be any: which range of addresses a node has, and whose images and volumes, since any pod may run there."""
_UNCOMPARED = frozenset({"events", "leases", "podmetrics", "ipaddresses"})
T = TypeVar("T")


class Simulated:
    """A world as a host: its loop runs while something is done in it, and while time passes."""

    def __init__(self, seed: int, options: NodeOptions) -> None:
        self._runner = asyncio.Runner(loop_factory=VirtualLoop)
        self.world = self.run(lambda: World(seed, options))
        self.server, self.clock = self.world.server, self.world.clock
        self.do(World.start)

    def do(self, step: Callable[[World], Coroutine[Any, Any, T]]) -> T:
        """Do something in the world."""
        return self._runner.run(step(self.world))

    def run(self, function: Callable[[], T]) -> T:
        if self._runner.get_loop().is_running():
            return function()

        async def work() -> T:
            return function()

        return self._runner.run(work())

    def advance(self, seconds: float) -> None:
        self.do(lambda world: world.clock.sleep(seconds))

    def aside(self, work: Callable[[], None]) -> Callable[[], None]:
        self._runner.get_loop().call_soon(work)
        return lambda: None

    def close(self) -> None:
        self.do(World.stop)
        self._runner.close()


class Manager:
    """The controllers of a story, as what is perturbed. Each of them is a client."""

    user, virtual = MANAGER.name, True

    def __init__(self, host: Simulated, story: Story) -> None:
        self._host = host
        self._story = story
        self._metrics = Registry()
        self._task: asyncio.Task[int]

    def client_of(self, asked: Asked) -> str:
        return asked.user_agent.rpartition("/")[2]

    def start(self) -> None:
        story = self._story
        flags = tuple(flag.format(files=files()) for flag in story.flags)
        only = tuple(story.only)
        world, metrics = self._host.world, self._metrics
        self._task = self._host.run(
            lambda: world.manager(None, only, through=story.through, flags=flags, served=story.served, metrics=metrics)
        )

    def kill(self) -> None:
        self._host.run(self._task.cancel)

    def restart(self) -> None:
        self.kill()
        self.start()

    def sever(self) -> None:
        self._task.cancel()

    def alive(self) -> bool:
        return not self._task.done()

    def check(self) -> None:
        """Raises AssertionError: it must not end."""
        if self._task.done():
            raise AssertionError(f"the manager has ended: {self._task.exception()!r}")

    def idle(self) -> list[str]:
        """The controllers of the story that have written nothing."""
        names = [f"{name}-controller" for name in self._story.about]
        return [name for name in names if not metric(self._metrics, "kcm_controller_writes_total", controller=name)]


def placeless(doc: Any) -> Any:
    """Endpoints without where they are, in an order that does not depend on that."""
    if isinstance(doc, list):
        return [placeless(one) for one in doc]
    if not isinstance(doc, dict):
        return doc
    doc = {key: placeless(one) for key, one in doc.items() if key not in _ANY_WILL_DO}
    doc = {key: one for key, one in doc.items() if key not in ("addresses", "notReadyAddresses")} | {
        key: len(doc[key]) for key in ("addresses", "notReadyAddresses") if isinstance(doc.get(key), list)
    }
    doc = {key: {"kind": one.get("kind")} if key == "targetRef" else one for key, one in doc.items()}
    for key in ("endpoints", "subsets"):
        if isinstance(doc.get(key), list):
            doc[key] = sorted(doc[key], key=codec.encode_sorted)
    return doc


def explained(story: str, point: Point, wrong: Sequence[str]) -> str:
    """Why all that is wrong has to be so; empty if some of it is a finding."""
    whys = [
        next((one.why for one in EXPLAINED if re.fullmatch(one.point, at) and re.fullmatch(one.wrong, line)), "")
        for at in [f"{story}/{point}"]
        for line in wrong
    ]
    return "; ".join(dict.fromkeys(whys)) if all(whys) else ""


@cache
def _folder() -> "TemporaryDirectory[str]":
    folder = TemporaryDirectory()
    Certificates.load(Path(folder.name), EPOCH)
    return folder


def files() -> str:
    """Where ``ca.crt`` and ``ca.key`` are."""
    return _folder().name


@contextmanager
def staged(
    name: str, point: Point | None = None, reference: Record | None = None, seed: int = 1
) -> Iterator[tuple[Trial, Callable[[], None]]]:
    """A story that is ready to be played: its trial, and what plays it, which raises Perturbed."""
    story, host = STORIES[name], Simulated(seed, NodeOptions(STORIES[name].nodes))
    for step in story.before:
        host.do(step)
    again = f"python -m tests.simulation.perturb --replay '{name}/{{}}'"
    measure = Measure(_UNCOMPARED, placeless, lambda point, wrong: explained(name, point, wrong), again, polls=False)
    base = snapshots.take(host.server.store)
    trial, manager = Trial(host, base, NAMESPACE, point, reference, measure), Manager(host, story)

    def play() -> None:
        trial.begin(manager)
        host.advance(START_S)
        if not story.start:
            trial.record.spots = Spots()
        try:
            for step in story.steps:
                host.do(step)
                trial.settle()
            try:
                trial.finish()
            finally:  # what differs may be explained
                manager.check()
                assert not (wrong := story.check(host.world)), wrong
            assert reference is not None or not manager.idle(), f"nothing is written by {manager.idle()}"
        except Perturbed:
            raise
        except AssertionError as error:
            raise trial.failed(error) from error

    try:
        yield trial, play
    finally:
        trial.stop()
        host.close()


def recorded(story: str, reference: Record | None = None, seed: int = 1) -> Record:
    """The record of a run without a fault. Raises Perturbed if it is not as the reference, or a controller of the story
    has written nothing."""
    with staged(story, None, reference, seed) as (trial, play):
        play()
        return trial.record


def reference(story: str) -> Record:
    """What runs with different chance have in common, and the points of one that waits for no longer than a perturbed
    one does: all that can come up. Raises Perturbed where a controller writes nothing, or a run differs by itself."""
    first, second = (recorded(story, seed=seed) for seed in (1, 2))
    common = reference_of(first, second)
    return msgspec.structs.replace(common, spots=recorded(story, common).spots.shared(common.spots))


def points_of(reference: Record) -> list[Point]:
    """All of a story. Where there is nothing of a kind, all are emptied alike."""
    present = {key.partition(" ")[0] for state in reference.checkpoints for key in state}
    found = reference.spots.points(ALL_KINDS, 0)
    return [one for one in found if one.spot.verb != "deletecollection" or one.spot.resource in present]


def outcome_of(story: str, point: Point, reference: Record, *, shown: bool = False) -> TrialResult:
    """What became of a point. shown: what was written is printed, too."""
    with staged(story, point, reference) as (trial, play):
        outcome = judged(trial, play)
        if shown and not outcome.story:
            print(trial.story(()))
    return outcome


class Result(msgspec.Struct, frozen=True):
    """What became of a story: the outcome of each point, and the CPU time."""

    story: str
    outcomes: Sequence[TrialResult]
    cpu_s: float


def perturbed(story: str, sample: int, seed: int, replay: str) -> Result:
    """Run a story at its points, or at some of them."""
    logging.disable(logging.CRITICAL)
    began = time.process_time()
    found = reference(story)
    points = points_of(found)
    if replay:
        points = [point_of(replay)]
    elif sample:
        points = random.Random(f"{seed}/{story}").sample(points, min(sample, len(points)))
    outcomes = [outcome_of(story, point, found, shown=bool(replay)) for point in points]
    return Result(story, outcomes, time.process_time() - began)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--story", choices=STORIES, action="append")
    parser.add_argument("--sample", type=int, default=0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--replay", default="", metavar="STORY/POINT")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    args = parser.parse_args()
    name, _, replay = args.replay.partition("/")
    stories = [name] if name else args.story or list(STORIES)
    all_of: list[TrialResult] = []
    cpu_s = 0.0
    with ProcessPoolExecutor(args.jobs) as pool:
        waiting = [pool.submit(perturbed, story, args.sample, args.seed, replay) for story in stories]
        for one in as_completed(waiting):
            result = one.result()
            all_of, cpu_s = [*all_of, *result.outcomes], cpu_s + result.cpu_s
            print(f"{result.story:24}{counted(result.outcomes)}, {result.cpu_s:.0f} s of CPU", flush=True)
            for outcome in result.outcomes:
                print("".join(f"{line}\n" for line in lines_of(result.story, outcome)), end="", flush=True)
    print(f"{counted(all_of)}, {cpu_s:.0f} s of CPU")
    return 1 if any(outcome.story or not outcome.came_up for outcome in all_of) else 0


def counted(outcomes: Sequence[TrialResult]) -> str:
    found, noted = sum(bool(one.story) for one in outcomes), sum(bool(one.note) for one in outcomes)
    idle = sum(not one.came_up for one in outcomes)
    return f"{len(outcomes):5} points, {found} not stood, {noted} explained, {idle} did not come up"


def lines_of(story: str, outcome: TrialResult) -> Iterator[str]:
    if not outcome.came_up:
        yield f"{story}/{outcome.point} did not come up"
    if outcome.story:
        yield f"{story}/{outcome.point}"
        yield outcome.story


if __name__ == "__main__":
    sys.exit(main())
