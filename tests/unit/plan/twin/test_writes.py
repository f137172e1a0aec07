"""Writes of a twin's controllers, as they are recorded."""

from typing import Any

import pytest

from kcm_cli.machinery import codec
from kcm_cli.plan.twin.writes import Watched, Write, Written
from kcm_cli.rest.transport import Request
from tests.kit.world import World


async def recorded(world: World, path: str, body: Any) -> Write:
    """The record of a creation."""
    written = Written(world.clock.monotonic, lambda: world.clock.sleep(0))
    await Watched(world.server.transport(), "a-controller", written).send(
        Request("POST", path, body=codec.encode(body), headers={"content-type": "application/json"})
    )
    (write,) = written.writes
    return write


@pytest.mark.cluster(alone=True)
async def test_a_creation_is_recorded(world: World) -> None:
    write = await recorded(world, "/api/v1/namespaces/default/configmaps", {"metadata": {"name": "c"}})
    assert (write.kind, write.name, write.status, write.done) == ("ConfigMap", "c", 201, True)


@pytest.mark.cluster(alone=True)
async def test_an_answer_that_is_no_json_is_recorded(world: World) -> None:
    """That of a resource which is not served is a line of text."""
    write = await recorded(world, "/apis/harbour.example.com/v1/namespaces/default/berths", {"metadata": {"name": "b"}})
    assert (write.verb, write.name, write.status, write.done) == ("create", "b", 404, False)
