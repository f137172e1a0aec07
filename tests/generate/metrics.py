"""docs/metrics.md: the metrics of a manager, from what the parts of one with all controllers declare.

A manager's parts and all controllers run for a few seconds on virtual time. A declaration belongs to the controller in
whose folder it is. Metrics that are only computed for a scrape are read from a scrape.
"""

import logging
import re
import sys
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from functools import cache
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TypeVar
from unittest.mock import patch

import msgspec

from kcm_cli.component import virtual
from kcm_cli.component.clock import LoopClock
from kcm_cli.component.metrics import Histogram, Registry
from kcm_cli.component.metrics.informers import HANDLING_BUCKETS, CacheState
from kcm_cli.component.metrics.instruments import Description, Family, Instrument
from kcm_cli.component.metrics.spans import span_counters
from kcm_cli.machinery import codec
from kcm_cli.manager.config import complete
from kcm_cli.manager.controller_map import CONTROLLERS
from kcm_cli.manager.observability import Observability
from kcm_cli.manager.options import flag_set
from kcm_cli.manager.server.metrics import AuthMetrics
from kcm_cli.runtime.leader import ElectionConfig, Elector
from kcm_cli.sandbox.apiserver.security.certificates import Certificates
from tests.kit.controlling import controllers
from tests.kit.devices import make_claim
from tests.kit.places import ROOT
from tests.kit.root_ca import CA
from tests.kit.world import World, resource, running_world

_HEAD = """\
# Metrics of kcm

Written by `make docs` from the declarations; do not edit.

`/metrics` on port 10257 has these metrics, and `/metrics/slis` those of health checks. Names, types, labels, buckets
and stability levels are those of kube-controller-manager v1.36, except for metrics marked *kcm only*. The
[runbook](runbook.md#alerts) has the alerts that use them, and [configs/](../configs/prometheus/alerts.yaml)
their rules, a scrape configuration and a dashboard.

A metric appears with its first value. Deprecated ones that are hidden appear with `--show-hidden-metrics-for-version`.
"""
_PARTS = {
    "workqueue_": "Queues",
    "informer_": "Caches",
    "kcm_": "Controllers in general",
    "running_": "Controllers in general",
    "rest_client_": "Requests to the API server",
    "leader_election_": "Leader election",
    "kubernetes_healthcheck": "Health checks",
    "apiserver_": "Port 10257",
    "authenticat": "Port 10257",
    "authorization_": "Port 10257",
    "": "Process, build and metrics",
}
"""Headings by the beginnings of names, for metrics that no controller declares."""
_PROCESS = "process_"
"""Of Go's client library, too, which is not a part of the recorded reference."""
T = TypeVar("T", bound=Instrument)


class Metric(msgspec.Struct, frozen=True):
    """A metric. part: the controller, or another heading of the page."""

    name: str
    type: str
    labels: tuple[str, ...]
    stability: str
    help: str
    part: str


@cache
def metrics() -> tuple[Metric, ...]:
    """All metrics of a manager, by name."""
    found: dict[str, Metric] = {}
    register = Registry.register

    def recorded(registry: Registry, description: Description, make: object) -> Family[T]:
        modules = list(_callers())
        if not any(module.startswith("kcm_cli.sandbox.") for module in modules):
            found.setdefault(description.name, _declared(description, _part(description.name, modules)))
        return register(registry, description, make)  # type: ignore[arg-type]

    with patch.object(Registry, "register", recorded), TemporaryDirectory() as folder:
        logging.disable()  # kinds that are not served
        for metric in chain.from_iterable(map(_computed, virtual.run(_pages(Path(folder))))):
            found.setdefault(metric.name, metric)
        logging.disable(logging.NOTSET)
    return tuple(found[name] for name in sorted(found))


async def _pages(folder: Path) -> list[str]:
    (folder / "ca").write_text(CA)
    flags = ["--allocate-node-cidrs", "--cluster-cidr=10.244.0.0/16", f"--root-ca-file={folder / 'ca'}"]
    config = complete(flag_set().parse([*flags, "--show-hidden-metrics-for-version=1.35"]))
    show = Observability(config, LoopClock())
    AuthMetrics.register(show.registry)
    span_counters(show.registry)
    Elector(ElectionConfig(identity="x"), object(), LoopClock(), object(), show.registry)  # type: ignore[arg-type]
    show.workqueues.queue("x", lambda: 0.0)
    show.running.caches(lambda: [CacheState("", "v1", "pods", 7, Histogram(HANDLING_BUCKETS))])
    names = [controller.name for controller in CONTROLLERS if not controller.cloud_only]
    async with running_world(Certificates.load(None, datetime.now(UTC))) as world:
        await occupy(world)
        async with controllers(world, *config.by_type().values(), names=names, metrics=show.registry):
            await world.wait(20)
            return [show.registry.expose().decode(), show.slis.expose().decode()]


async def occupy(world: World) -> None:
    """Create what metrics count: a ResourceClaim, a volume and a claim that are bound, and one of each that are not."""
    await make_claim(world)
    capacity = {"storage": "1Gi"}
    for name in ("a", "b"):
        spec = {"capacity": capacity, "accessModes": ["ReadWriteOnce"], "hostPath": {"path": "/x"}}
        await world.create(
            resource("persistentvolumes", namespaced=False),
            {"metadata": {"name": name}, "spec": {**spec, "storageClassName": name}},
        )
    for name in ("a", "c"):
        claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": capacity}, "storageClassName": name}
        await world.create(resource("persistentvolumeclaims"), {"metadata": {"name": name}, "spec": claim})


def _declared(description: Description, part: str) -> Metric:
    return Metric(
        description.name,
        description.kind,
        description.labels,
        description.stability.value,
        description.help,
        part,
    )


def _callers() -> Iterator[str]:
    """The modules that are being executed, the innermost first."""
    frame = sys._getframe(2)
    while frame.f_back is not None:
        yield str(frame.f_globals.get("__name__", ""))
        frame = frame.f_back


def _part(name: str, modules: Iterable[str] = ()) -> str:
    for module in modules:
        if match := re.match(r"kcm_cli\.controllers\.(?!shared\b)(\w+)", module):
            return f"{match[1].replace('_', '-')}-controller"
    owner = upstream().get(name, "")
    if any(owner == controller.name for controller in CONTROLLERS):
        return owner
    return next(part for start, part in _PARTS.items() if name.startswith(start))


@cache
def upstream() -> dict[str, str]:
    """The metrics of kube-controller-manager, with their owners."""
    facts = codec.decode((ROOT / "tests/recorded/reference/metrics.json").read_bytes(), list[dict[str, object]])
    return {str(fact["name"]): str(fact["owner"]) for fact in facts}


def _computed(page: str) -> Iterator[Metric]:
    """The families of a scrape."""
    types = dict(re.findall(r"^# TYPE (\S+) (\w+)$", page, re.MULTILINE))
    for name, text in re.findall(r"^# HELP (\S+) (.*)$", page, re.MULTILINE):
        stability, _, help_text = text.rpartition("] ")
        samples = re.findall(rf"^{name}(?:_bucket)?\{{(.*)\}} ", page, re.MULTILINE)
        labels = dict.fromkeys(label for sample in samples for label in re.findall(r'(\w+)="', sample) if label != "le")
        yield Metric(name, types[name], tuple(labels), stability.lstrip("["), help_text, _part(name))


def metrics_document() -> str:
    """docs/metrics.md."""
    parts: dict[str, list[Metric]] = {part: [] for part in _PARTS.values()}
    for metric in sorted(metrics(), key=lambda metric: (metric.part.endswith("-controller"), metric.part)):
        parts.setdefault(metric.part, []).append(metric)
    lines = [_HEAD]
    for part, members in parts.items():
        lines += [
            f"## {part}",
            "",
            "| Metric | Type | Labels | Stability | Meaning |",
            "| --- | --- | --- | --- | --- |",
        ]
        lines += [*map(_row, sorted(members, key=lambda metric: metric.name)), ""]
    return "\n".join(lines)


def _row(metric: Metric) -> str:
    labels = ", ".join(f"`{label}`" for label in metric.labels)
    known = metric.name in upstream() or metric.name.startswith(_PROCESS)
    text = metric.help.replace("|", "\\|") + ("" if known else " *kcm only*")
    return f"| `{metric.name}` | {metric.type} | {labels} | {metric.stability} | {text} |"
