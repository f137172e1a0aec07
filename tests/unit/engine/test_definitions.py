"""When discovery is refreshed."""

import random
from typing import Any

import pytest

from kcm_cli.component import virtual
from kcm_cli.component.clock import LoopClock
from kcm_cli.engine.context import ControllerContext
from kcm_cli.engine.definitions import Refreshes, name_of
from kcm_cli.engine.door import Door
from kcm_cli.rest.client import Client
from kcm_cli.rest.ratelimit import Unlimited
from kcm_cli.runtime.informers import Informers
from kcm_cli.runtime.tasks import Tasks
from kcm_cli.sandbox.apiserver.security.certificates import Certificates
from tests.kit.embedded import EmbeddedServer
from tests.kit.faults import Refusing
from tests.kit.widgets import CRDS, definition
from tests.kit.world import EPOCH

AT = 7.25
"""When definitions are created."""


def refreshed(certificates: Certificates, definitions: int, *, served: bool, listable: bool = True) -> list[float]:
    """The times of the refreshes in the first minute. So many definitions are created at ``AT``, and followed by the
    next refresh if they are served."""

    async def main() -> list[float]:
        clock, rng = LoopClock(EPOCH), random.Random(1)
        server = EmbeddedServer(clock, rng, certificates)
        await server.start()
        transport = Refusing(server.transport(), lambda request: not listable and request.method == "GET")
        client = Client(transport, limiter=Unlimited(), user_agent="test", clock=clock)
        tasks = Tasks(lambda name, error: pytest.fail(f"{name} crashed: {error!r}"))
        informers = Informers(client, clock, rng)
        context: Any = ControllerContext(
            name="c",
            clock=clock,
            rng=rng,
            gates=None,  # type: ignore[arg-type]  # no gate is asked for
            configs={},
            client=Door(client, "c"),
            informers=informers,
            recorder=None,  # type: ignore[arg-type]  # no Events
            recorder_for=lambda source: pytest.fail("no Events"),
            start_informers=lambda: informers.start(tasks),
        )
        times, followed, started = list[float](), set[str](), clock.monotonic()

        async def step() -> None:
            times.append(round(clock.monotonic() - started, 3))
            if served:
                followed.update(name_of("example.com", f"things{number}") for number in range(definitions))

        tasks.start("refreshes", Refreshes(context, step, lambda names: not names <= followed).run())
        await clock.sleep(AT)
        followed.clear()
        for number in range(definitions):
            await client.create(CRDS, "", definition(f"things{number}"))
        await clock.sleep(59 - AT)
        await tasks.stop()
        return times

    return virtual.run(main())


def test_without_new_definitions_discovery_is_polled(certificates: Certificates) -> None:
    assert refreshed(certificates, 0, served=True) == [0, 30]


@pytest.mark.parametrize("definitions", [1, 20])
def test_new_definitions_are_followed_by_one_refresh(certificates: Certificates, definitions: int) -> None:
    assert refreshed(certificates, definitions, served=True) == [0, AT + 0.5, AT + 30.5]


def test_a_definition_that_is_not_served_is_looked_for_ever_more_rarely(certificates: Certificates) -> None:
    assert refreshed(certificates, 1, served=False) == [0, *(AT + after for after in (0.5, 1, 2, 4, 8, 16, 46))]


def test_a_manager_that_may_not_list_definitions_polls(certificates: Certificates) -> None:
    assert refreshed(certificates, 1, served=True, listable=False) == [0, 30]
