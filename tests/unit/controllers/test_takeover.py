"""Objects settled by another manager are not changed, however they are serialised: no write, no restart of pods."""

import copy
import random
from collections.abc import Callable
from typing import Any

import pytest

from kcm_cli.api.apps import CONTROLLER_REVISIONS, DAEMON_SETS, DEPLOYMENTS, REPLICA_SETS, STATEFUL_SETS
from kcm_cli.api.core import PODS
from kcm_cli.api.resource import Resource
from kcm_cli.controllers.daemonset.config import DaemonSetConfig
from kcm_cli.controllers.deployment.config import DeploymentConfig
from kcm_cli.controllers.replicaset.config import ReplicaSetConfig
from kcm_cli.controllers.statefulset.config import StatefulSetConfig
from kcm_cli.machinery import codec
from tests.kit.controlling import controllers
from tests.kit.faults import Noting
from tests.kit.world import World
from tests.unit.planning.test_template_form import DEFAULTED, FULL, NUMBERS, SPELLINGS, edited, respelt

NAMES = ("deployment-controller", "replicaset-controller", "statefulset-controller", "daemonset-controller")
CONFIGS = (DeploymentConfig(), ReplicaSetConfig(), StatefulSetConfig(), DaemonSetConfig())
OWNERS = (DEPLOYMENTS, STATEFUL_SETS, DAEMON_SETS)
PATCH = {"$patch": "replace"}


def template() -> dict[str, Any]:
    """``FULL`` without what this cluster has not."""
    made = edited(FULL, ("spec", "nodeSelector"), ...)
    for field in ("serviceAccount", "serviceAccountName"):
        made = edited(made, ("spec", field), "default")
    return made


def document(kind: Resource[Any], pods: dict[str, Any]) -> dict[str, Any]:
    name = kind.kind.lower()
    labels = {"app": name}
    spec: dict[str, Any] = {
        "selector": {"matchLabels": labels},
        "template": edited(pods, ("metadata", "labels"), labels),
    }
    return {"apiVersion": "apps/v1", "kind": kind.kind, "metadata": {"name": name}, "spec": spec}


class Takeover:
    """A cluster with one workload of each kind, and what is written to it."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.noting = Noting(world.server.transport())

    def running(self) -> Any:
        return controllers(self.world, *CONFIGS, names=NAMES, transport=self.noting)

    async def settle(self) -> None:
        """Workloads as the manager before made them."""
        async with self.running():
            for kind in OWNERS:
                await self.world.client.create(kind, "default", document(kind, template()))
            await self.world.wait(60)
        assert len(await self.world.items(PODS)) == 5
        self.noting.sent.clear()

    def rewrite(self, kind: Resource[Any], change: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
        """Change all objects of a kind as no client may: in the store."""
        store = self.world.server.store
        for stored in store.list(kind.gvr, "default"):
            store.update(kind.gvr, "default", stored.name, change(copy.deepcopy(stored.doc)))


def respell_owners(chosen: list[Any]) -> Callable[[dict[str, Any]], dict[str, Any]]:
    def change(doc: dict[str, Any]) -> dict[str, Any]:
        return edited(doc, ("spec", "template"), respelt(doc["spec"]["template"], chosen))

    return change


def respell_revisions(chosen: list[Any]) -> Callable[[dict[str, Any]], dict[str, Any]]:
    def change(doc: dict[str, Any]) -> dict[str, Any]:
        return edited(doc, ("data", "spec", "template"), respelt(doc["data"]["spec"]["template"], chosen))

    return change


@pytest.mark.parametrize("seed", range(12))
async def test_equivalent_objects_of_a_settled_cluster_are_not_written(world: World, seed: int) -> None:
    """Deployments and ReplicaSets may differ in how quantities are spelt, revisions in the defaults of their time."""
    rng = random.Random(seed)

    def some(choices: list[Any]) -> list[Any]:
        found = rng.sample(choices, rng.randrange(len(choices)))
        return list({path: (path, value) for path, value in found}.values())

    story = Takeover(world)
    await story.settle()
    story.rewrite(DEPLOYMENTS, respell_owners(some(SPELLINGS + NUMBERS)))
    story.rewrite(REPLICA_SETS, respell_owners(some(SPELLINGS + NUMBERS)))
    story.rewrite(STATEFUL_SETS, respell_owners(some(SPELLINGS)))
    story.rewrite(DAEMON_SETS, respell_owners(some(SPELLINGS)))
    absent = [(path, ...) for path in rng.sample(DEFAULTED, rng.randrange(len(DEFAULTED)))]
    story.rewrite(CONTROLLER_REVISIONS, respell_revisions([*some(SPELLINGS), *absent]))
    async with story.running():
        await world.wait(300)
    assert story.noting.written() == []


async def test_revisions_of_a_1_33_manager_match_the_template(world: World) -> None:
    story = Takeover(world)
    await story.settle()
    story.rewrite(CONTROLLER_REVISIONS, respell_revisions([(("metadata", "creationTimestamp"), None)]))
    async with story.running():
        await world.wait(300)
    assert story.noting.written() == []


async def test_duplicate_revisions_of_an_upgrade_are_not_merged(world: World) -> None:
    """The 1.34 managers made a second revision of an unchanged template: it is current, and the first is history."""
    story = Takeover(world)
    await story.settle()
    for found in await world.items(CONTROLLER_REVISIONS):
        kept = {key: found["metadata"][key] for key in ("labels", "ownerReferences")}
        doc = {"metadata": {"name": f"{found['metadata']['name']}-old", **kept}, "revision": 0}
        pods = edited(found["data"]["spec"]["template"], ("metadata", "creationTimestamp"), None)
        await world.client.create(
            CONTROLLER_REVISIONS, "default", codec.encode({**doc, "data": {"spec": {"template": pods}}})
        )
    async with story.running():
        await world.wait(300)
    assert story.noting.written() == []
