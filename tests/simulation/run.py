"""Random work, random faults, managers that are killed at random; at the end everything has to settle.

python -m tests.simulation.run --seeds 200     (make simulate SEEDS=200)
python -m tests.simulation.run --seed 17       replays one run exactly
"""

import argparse
import asyncio
import logging
import sys
import time
from contextlib import suppress

from kcm_cli.sandbox.apiserver.entry.fault import Fault
from tests.simulation.workload import Workload, unsettled
from tests.simulation.world import World, simulate

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


async def story(world: World) -> int:
    """One run; the revision of the store at its end. Raises NotSettled."""
    work = Workload(world, world.rng)
    manager = world.manager(random_faults(world))
    for _ in range(STEPS):
        await work.step()
        await world.clock.sleep(world.rng.expovariate(1 / 3))
        if world.rng.random() < 0.15:
            await _kill(manager)
            manager = world.manager(random_faults(world))
    await _kill(manager)
    manager = world.manager()
    try:
        await settle(world, work)
    finally:
        await _kill(manager)
    return world.server.store.revision


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


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--seeds", type=int, default=50)
    parser.add_argument("--seed", type=int)
    args = parser.parse_args()
    logging.disable(logging.NOTSET if args.seed is not None else logging.CRITICAL)
    seeds = [args.seed] if args.seed is not None else range(args.seeds)
    failed: list[int] = []
    started = time.monotonic()
    for seed in seeds:
        try:
            revision = simulate(seed, story)
        except NotSettled as error:
            failed.append(seed)
            print(f"seed {seed}: {error}", flush=True)
        else:
            if args.seed is not None:
                print(f"seed {seed}: settled at revision {revision}", flush=True)
    print(f"{len(seeds) - len(failed)} settled, {len(failed)} did not {failed}, {time.monotonic() - started:.0f} s")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
