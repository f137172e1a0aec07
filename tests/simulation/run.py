"""Random work, random faults, managers that are killed at random; at the end everything has to settle.

python -m tests.simulation.run --seeds 200                 (make simulate SEEDS=200)
python -m tests.simulation.run --first 200 --seeds 800     those after them
python -m tests.simulation.run --seed 17                   replays one run exactly, with its log
"""

import argparse
import asyncio
import logging
import multiprocessing
import os
import sys
import time
import zlib
from collections.abc import Awaitable, Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import suppress
from functools import partial

from kcm_cli.machinery import codec
from kcm_cli.rest.transport import Transport
from kcm_cli.sandbox.apiserver.entry.fault import Fault
from tests.kit.forms import InProtobuf
from tests.kit.simulation import World, simulate
from tests.kit.workload import Workload, unsettled

STEPS = 25
SETTLE_S = 1200.0
CHECK_S = 5.0


class NotSettled(AssertionError):
    """Something is still wrong long after the last fault."""


def random_faults(world: World) -> list[Fault]:
    rng = world.rng
    faults = [
        # Never nothing: while a watch waits to be opened again, what a stale cache makes and the collector takes away
        # would go on within one moment of virtual time for ever.
        Fault("delay", delay_s=(0.001, rng.choice((0.001, 0.02, 0.2)))),
        Fault("throttle", chance=rng.choice((0.0, 0.05))),
        Fault("conflict", chance=rng.choice((0.0, 0.1, 0.5))),
        Fault("lose", chance=rng.choice((0.0, 0.02, 0.1))),
        Fault("expire", chance=rng.choice((0.0, 0.05))),
    ]
    if cut_s := rng.choice((0.0, 1.0, 10.0)):
        faults += [Fault("cut", after_s=cut_s, broken=True, chance=0.5), Fault("cut", after_s=cut_s)]
    if rng.random() < 0.5:
        faults.append(Fault("away", start_s=rng.uniform(5, 30), for_s=rng.uniform(1, 20)))
    return faults


async def story(world: World, through: Callable[[Transport], Transport] = lambda transport: transport) -> str:
    """One run; the revision of the store at its end, and a hash of its pods. Raises NotSettled.

    through: as of ``World.manager``.
    """
    work = Workload(world, world.rng)
    manager = world.manager(random_faults(world), through=through)
    for _ in range(STEPS):
        await work.step()
        await world.clock.sleep(world.rng.expovariate(1 / 3))
        if world.rng.random() < 0.15:
            await _kill(manager)
            manager = world.manager(random_faults(world), through=through)
    await _kill(manager)
    manager = world.manager(through=through)
    try:
        await settle(world, work)
    finally:
        await _kill(manager)
    return f"{world.server.store.revision}, pods {zlib.crc32(codec.encode_sorted(world.objects('v1/pods'))):x}"


async def settle(world: World, work: Workload) -> None:
    deadline = world.clock.monotonic() + SETTLE_S
    while problems := unsettled(world, work):
        if world.clock.monotonic() > deadline:
            raise NotSettled("\n".join(problems))
        await world.clock.sleep(CHECK_S)


async def _kill(manager: "asyncio.Task[None]") -> None:
    manager.cancel()
    with suppress(asyncio.CancelledError):
        await manager


def failures(
    run: Callable[[World], Awaitable[int]], seeds: Iterable[int], jobs: int
) -> Iterator[tuple[int, BaseException]]:
    """Run so many at once, each in a process: the seeds that did not settle, or that raised something else."""
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(jobs, context, logging.disable, (logging.CRITICAL,)) as pool:
        runs = {pool.submit(simulate, seed, run): seed for seed in seeds}
        for done in as_completed(runs):
            if (error := done.exception()) is not None:
                yield runs[done], error


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=50, help="how many to run (default 50)")
    parser.add_argument("--first", type=int, default=0, help="the first of them (default 0)")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="at once (default: cores)")
    parser.add_argument("--seed", type=int, help="run this one in this process, and log")
    parser.add_argument("--protobuf", action="store_true", help="lists and watches in protobuf, as of other servers")
    args = parser.parse_args()
    run = partial(story, through=InProtobuf) if args.protobuf else story
    if args.seed is not None:
        print(f"seed {args.seed}: settled at revision {simulate(args.seed, run)}")
        return 0
    started = time.monotonic()
    failed = []
    for seed, error in failures(run, range(args.first, args.first + args.seeds), args.jobs):
        failed.append(seed)
        print(f"seed {seed}: {type(error).__name__}: {error}", flush=True)
    took_s = time.monotonic() - started
    print(f"{args.seeds - len(failed)} settled, {len(failed)} did not {sorted(failed)}, {took_s:.0f} s")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
