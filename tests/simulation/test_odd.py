"""All controllers, with a third of the objects of every kind odd: ordinary workloads settle."""

import asyncio
import logging
import random
from contextlib import suppress

import pytest

from kcm_cli.rest.transport import Transport
from kcm_cli.sandbox.apiserver.entry.fault import Fault
from tests.kit.simulation import World, simulate
from tests.kit.workload import Workload
from tests.simulation.odd import OddTransport
from tests.simulation.run import settle

SHARED = ("Listener failed", "Index function failed", "Pass failed", "Task ended unexpectedly", "Worker ended")
"""Errors that cost more than the object in which they begin."""


@pytest.mark.parametrize("seed", range(3))
def test_workloads_settle_beside_odd_objects_of_every_kind(seed: int, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.ERROR)
    made: list[OddTransport] = []

    def through(inner: Transport) -> Transport:
        made.append(OddTransport(inner, random.Random(seed)))
        return made[-1]

    async def scenario(world: World) -> None:
        work = Workload(world, world.rng)
        manager = world.manager([Fault("delay", delay_s=(0.001, 0.01))], through=through)
        for _ in range(10):
            await work.step()
            await world.clock.sleep(3)
        await settle(world, work)
        assert not manager.done()
        manager.cancel()
        with suppress(asyncio.CancelledError):
            await manager

    simulate(seed, scenario)
    assert made[0].added > 100
    assert not [record.message for record in caplog.records if record.message.startswith(SHARED)]
