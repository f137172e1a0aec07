"""The metrics of upstream that a manager with all controllers lacks, with reasons."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from kcm_cli.component.clock import LoopClock
from kcm_cli.component.metrics import Histogram, Registry
from kcm_cli.component.metrics.informers import HANDLING_BUCKETS, CacheState
from kcm_cli.manager.config import complete
from kcm_cli.manager.controller_map import CONTROLLERS
from kcm_cli.manager.observability import Observability
from kcm_cli.manager.options import flag_set
from kcm_cli.manager.server.metrics import AuthMetrics
from kcm_cli.runtime.leader import ElectionConfig, Elector
from tests.generate.metrics import occupy
from tests.kit.controlling import controllers
from tests.kit.root_ca import CA
from tests.kit.world import World
from tests.unit.manager.test_observability import shown, touch

UNUSED = {"volume-plugins": "the plugins of nodes are not used"} | {
    controller.name: "no cloud is left in the original, either" for controller in CONTROLLERS if controller.cloud_only
}
"""Owners of metrics."""

STILL = {
    "informer_queued_items": "there is no queue between a watch and its listeners",
    "rest_client_exec_plugin_policy_call_total": "the original's has two labels, is given one, and never moves either",
    "rest_client_transport_cache_gc_calls_total": "it is about the cache of Go's client library",
    "rest_client_transport_cert_rotation_gc_calls_total": "it is about the cache of Go's client library",
}
"""Metrics that are there and never move, by reason; their help says so."""


async def test_missing_metrics_are_listed(
    world: World, reference: Callable[[str], list[dict[str, str]]], tmp_path: Path
) -> None:
    facts = reference("metrics.json")
    (tmp_path / "ca").write_text(CA)
    ranges = ["--allocate-node-cidrs", "--cluster-cidr=10.244.0.0/16"]  # their metrics come with them
    hidden = "--show-hidden-metrics-for-version=1.35"
    config = complete(flag_set().parse([f"--root-ca-file={tmp_path / 'ca'}", hidden, *ranges]))
    pages: list[str] = []
    show = Observability(config, LoopClock())
    AuthMetrics.register(show.registry)
    Elector(ElectionConfig(identity="x"), object(), LoopClock(), object(), show.registry)  # type: ignore[arg-type]
    show.workqueues.queue("x", lambda: 0.0)
    show.running.caches(lambda: [CacheState("", "v1", "pods", 7, Histogram(HANDLING_BUCKETS))])
    parts = config.by_type().values()
    names = [controller.name for controller in CONTROLLERS if not controller.cloud_only]
    await occupy(world)
    async with controllers(world, *parts, names=names, metrics=show.registry):
        await world.wait(20)
        touch(show.registry)
        touch(show.slis)
        pages.extend((show.registry.expose().decode(), show.slis.expose().decode()))
    present = {name for page in pages for name in shown(page)}
    lacking = {fact["name"] for fact in facts if fact["name"] not in present and fact["owner"] not in UNUSED}
    assert not lacking


def test_help_names_metrics_that_never_change() -> None:
    config = complete(flag_set().parse([]))
    show = Observability(config, LoopClock())
    still = {f.description.name for f in show.registry.families() if "Never moves" in f.description.help}
    assert still == {name for name in STILL if name.startswith("rest_client_")}


@pytest.mark.cluster(alone=True)
async def test_queues_with_retries_only_in_one_program(world: World) -> None:
    metrics = Registry()
    parts = complete(flag_set().parse([])).by_type().values()
    names = ["node-lifecycle-controller", "taint-eviction-controller", "resourcequota-controller"]
    async with controllers(world, *parts, names=names, metrics=metrics):
        await world.wait(1)
    assert {*re.findall('workqueue_retries_total{name="([^"]+)"}', metrics.expose().decode())} >= {
        "node_lifecycle_controller",
        "noexec_taint_node",
        "noexec_taint_pod",
        "resource_quota_controller_checks",
    }
