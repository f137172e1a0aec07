"""Changes whose plan is set beside what a prober saw: of each, how many endpoints of the Service ``web`` were ready.

    KUBEBUILDER_ASSETS=... python -m tests.plans.probed [NAME...]      record: make the changes on a real control plane
    python -m tests.plans.probed --write                               the table in docs/plan.md

Recording is as in ``tests.plans.record``: kube-apiserver and the Go manager, with simulated kubelets and scheduler,
and a prober in a process of its own (``tests.plans.prober``). tests/recorded/probed gets NAME.kcm, the cluster before
the change, and NAME.json, what the prober saw. The plan is made of a cluster without the annotations that say what
simulated pods do: it knows of pods what their status shows, as of real ones.
"""

import asyncio
import json
import os
import random
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from kcm_cli.component.clock import LoopClock
from kcm_cli.machinery import codec
from kcm_cli.plan import (
    Apply,
    Change,
    Delete,
    Drain,
    FailNode,
    Options,
    RemoveNode,
    Scale,
    SetImage,
    Snapshot,
    load,
    plan,
    save,
)
from kcm_cli.plan.answer import Availability
from kcm_cli.plan.collect import collect
from kcm_cli.rest import access
from kcm_cli.rest.authorized import Authorized
from kcm_cli.rest.client import Client
from kcm_cli.rest.discovery import discover
from kcm_cli.rest.ratelimit import Unlimited
from kcm_cli.rest.read_only import ReadOnly
from kcm_cli.rest.session import Session
from kcm_cli.sandbox.nodes.agents import NodeOptions
from kcm_cli.sandbox.nodes.annotations import PREFIX
from tests.kit.places import ROOT
from tests.kit.processes import Processes
from tests.kit.world import simulated
from tests.plans.metrics_api import MetricsApi
from tests.plans.prober import Step, sightings
from tests.plans.record import Recorder, real_cluster, reduced
from tests.plans.scenarios import Scenario, Space, Tree

PLACE = ROOT / "tests" / "recorded" / "probed"
SERVICE = "web"
_BATCH = 30


@dataclass(frozen=True)
class Probed(Scenario):
    """kind: of event, as in the table."""

    kind: str = ""
    ready_s: float = 40.0
    watched_s: float = 150.0


Made = tuple[Sequence[Tree], Sequence[Change]]
_MAKERS: list[tuple[Callable[[Space], Made], str, Tree]] = []


def probed(kind: str, **settings: Any) -> Callable[[Callable[[Space], Made]], Callable[[Space], Made]]:
    def keep(make: Callable[[Space], Made]) -> Callable[[Space], Made]:
        _MAKERS.append((make, kind, settings))
        return make

    return keep


def changes() -> list[Probed]:
    """All of them."""
    made = []
    for make, kind, settings in _MAKERS:
        name = make.__name__.replace("_", "-")
        setup, does = make(Space(name))
        made.append(Probed(name, tuple(setup), tuple(does), kind=kind, **settings))
    return made


def _rolling(surge: int | str, unavailable: int | str) -> Tree:
    return {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": surge, "maxUnavailable": unavailable}}


def _web(
    s: Space, replicas: int, ready: str = "9s", image: str = "app:1", notes: Tree | None = None, **spec: Any
) -> Tree:
    template = s.template("web", image, notes={"ready-delay": ready, **(notes or {})}, **spec.pop("pod", {}))
    return s.deployment("web", replicas, template, **spec)


def _image(s: Space, image: str = "app:2", kind: str = "deploy") -> SetImage:
    return SetImage(s.target(kind, "web"), image)


def _bad(s: Space, replicas: int, strategy: Tree) -> Tree:
    """With an image that cannot be pulled."""
    return _web(s, replicas, image="registry.invalid/app:2", notes={"pull-error": "no such host"}, strategy=strategy)


def _spread(**more: Any) -> Tree:
    rule = {"maxSkew": 1, "topologyKey": "kubernetes.io/hostname", "whenUnsatisfiable": "ScheduleAnyway", **more}
    return {"topologySpreadConstraints": [{**rule, "labelSelector": {"matchLabels": {"app": "web"}}}]}


# -- rollouts


@probed("rollout")
def surge_alone(s: Space) -> Made:
    return [_web(s, 3, strategy=_rolling(1, 0)), s.service("web")], [_image(s)]


@probed("rollout")
def surge_and_unavailable(s: Space) -> Made:
    return [_web(s, 6, "12s", strategy=_rolling(2, 2), minReadySeconds=9), s.service("web")], [_image(s)]


@probed("rollout")
def half_unavailable(s: Space) -> Made:
    return [_web(s, 6, "15s", strategy=_rolling(0, "50%")), s.service("web")], [_image(s)]


@probed("rollout")
def quarters_of_ten(s: Space) -> Made:
    return [_web(s, 10), s.service("web")], [_image(s)]


@probed("rollout")
def one_of_one_with_a_surge(s: Space) -> Made:
    return [_web(s, 1, "36s"), s.service("web")], [_image(s)]


@probed("rollout")
def one_of_one_unavailable(s: Space) -> Made:
    return [_web(s, 1, "18s", strategy=_rolling(0, 1)), s.service("web")], [_image(s)]


@probed("recreation")
def recreated_and_slow(s: Space) -> Made:
    return [_web(s, 3, "18s", strategy={"type": "Recreate"}), s.service("web")], [_image(s)]


@probed("recreation")
def recreated_after_a_pause(s: Space) -> Made:
    """Pods that sleep before they stop: the new ones wait for them."""
    container = {"preStop": {"sleep": {"seconds": 15}}}
    doc = _web(s, 3, "6s", strategy={"type": "Recreate"})
    doc["spec"]["template"]["spec"]["containers"][0]["lifecycle"] = container
    return [doc, s.service("web")], [_image(s)]


@probed("bad image")
def image_without_a_registry(s: Space) -> Made:
    return [_web(s, 4, strategy=_rolling(1, 1)), s.service("web")], [Apply(_bad(s, 4, _rolling(1, 1)))]


@probed("bad image")
def recreated_with_a_bad_image(s: Space) -> Made:
    return [_web(s, 3, strategy={"type": "Recreate"}), s.service("web")], [Apply(_bad(s, 3, {"type": "Recreate"}))]


@probed("rollout")
def stateful_and_slow(s: Space) -> Made:
    template = s.template("web", notes={"ready-delay": "15s"})
    return [s.stateful_set("web", 3, template), s.service("web")], [_image(s, kind="sts")]


@probed("rollout")
def stateful_two_at_once(s: Space) -> Made:
    template = s.template("web", notes={"ready-delay": "15s"})
    strategy = {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 2}}
    return [s.stateful_set("web", 4, template, updateStrategy=strategy), s.service("web")], [_image(s, kind="sts")]


@probed("rollout", nodes="aaaa")
def daemons_two_at_once(s: Space) -> Made:
    strategy = {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 2}}
    doc = s.daemon_set("web", template=s.template("web", notes={"ready-delay": "12s"}), updateStrategy=strategy)
    return [doc, s.service("web")], [_image(s, kind="ds")]


@probed("rollout")
def surge_that_a_quota_refuses(s: Space) -> Made:
    quota = s.doc("v1", "ResourceQuota", "few", {"hard": {"pods": "4"}})
    return [quota, _web(s, 4, strategy=_rolling(1, 1)), s.service("web")], [_image(s)]


@probed("rollout")
def surge_without_room(s: Space) -> Made:
    """Four pods of 1.9 CPUs fill two nodes of 4."""
    return [_web(s, 4, strategy=_rolling(2, 1), pod={"cpu": "1900m"}), s.service("web")], [_image(s)]


# -- replicas


@probed("scale")
def scaled_to_none(s: Space) -> Made:
    return [_web(s, 4), s.service("web")], [Scale(s.target("deploy", "web"), 0)]


@probed("scale")
def scaled_up_slowly(s: Space) -> Made:
    return [_web(s, 2, "24s"), s.service("web")], [Scale(s.target("deploy", "web"), 6)]


@probed("scale", load=(("web", 300),))
def autoscaler_step_by_step(s: Space) -> Made:
    """One pod every 15 s, at most."""
    cpu = {"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 50}}}
    down = {"stabilizationWindowSeconds": 0, "policies": [{"type": "Pods", "value": 1, "periodSeconds": 15}]}
    scaler = s.autoscaler("web", cpu, least=2, behavior={"scaleDown": down})
    return [_web(s, 6, "6s"), s.service("web"), scaler], [s.load("web", 15.0)]


# -- nodes


@probed("drain")
def drain_with_a_budget_and_slow_pods(s: Space) -> Made:
    doc = _web(s, 4, "12s", pod=_spread())
    return [doc, s.service("web"), s.budget("web", minAvailable=3)], [Drain(s.node(1))]


@probed("drain", nodes="aaa")
def drain_of_two_without_a_budget(s: Space) -> Made:
    return [_web(s, 6, "18s", pod=_spread()), s.service("web")], [Drain(s.node(1)), Drain(s.node(2))]


@probed("drain")
def drain_of_stateful_pods(s: Space) -> Made:
    template = s.template("web", notes={"ready-delay": "15s"}, **_spread())
    return [s.stateful_set("web", 4, template), s.service("web")], [Drain(s.node(2))]


@probed("node lost", nodes="aaa")
def node_lost_under_slow_pods(s: Space) -> Made:
    return [_web(s, 6, "15s", pod=_spread()), s.service("web")], [FailNode(s.node(2))]


@probed("node lost")
def node_removed_under_slow_pods(s: Space) -> Made:
    return [_web(s, 4, "15s", pod=_spread()), s.service("web")], [RemoveNode(s.node(1))]


@probed("taint")
def node_tainted_under_slow_pods(s: Space) -> Made:
    taint = {"key": "example.com/away", "effect": "NoExecute"}
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": s.node(1)}, "spec": {"taints": [taint]}}
    return [_web(s, 4, "15s", pod=_spread()), s.service("web")], [Apply(node)]


# -- the rest


@probed("deletion")
def deployment_deleted_behind_its_service(s: Space) -> Made:
    return [_web(s, 3, "12s"), s.service("web")], [Delete(s.target("deploy", "web"))]


@probed("selector")
def service_of_a_version(s: Space) -> Made:
    """A Service that selects the present version loses all endpoints in a rollout to the next one."""

    def version(name: str) -> Tree:
        doc = _web(s, 3)
        doc["spec"]["template"]["metadata"]["labels"]["version"] = name
        return doc

    return [version("1"), s.service("web", selector={"app": "web", "version": "1"})], [Apply(version("2"))]


@probed("selector")
def service_of_green_pods(s: Space) -> Made:
    green = s.deployment("green", 2, s.template("green", notes={"ready-delay": "6s"}))
    return [_web(s, 3), green, s.service("web")], [Apply(s.service("web", selector={"app": "green"}))]


@probed("preemption")
def displaced_by_the_important(s: Space) -> Made:
    doc = _web(s, 4, pod={"cpu": "1900m"})
    vip = s.template("vip", cpu="1900m", priorityClassName="system-cluster-critical")
    return [doc, s.service("web")], [Apply(s.deployment("vip", 2, vip))]


# -- plans


@dataclass(frozen=True)
class Beside:
    """A plan and what the prober saw: the lowest number of ready endpoints, and for how many seconds there were fewer
    than wanted."""

    name: str
    kind: str
    wanted: int
    planned: tuple[int, float]
    seen: tuple[int, float]

    @property
    def agrees(self) -> bool:
        """Whether the lowest number is equal, and the time, up to 3 s or a fifth: pods start and stop on whole seconds,
        and processes wait for one another."""
        return self.planned[0] == self.seen[0] and abs(self.planned[1] - self.seen[1]) <= max(3.0, self.seen[1] / 5)


def recorded() -> list[Probed]:
    """Those that there is a recording of."""
    return [one for one in changes() if (PLACE / f"{one.name}.json").exists()]


def beside(one: Probed) -> Beside:
    """Plan a change, and set it beside the recording."""
    steps: list[Step] = [(at, count) for at, count in json.loads((PLACE / f"{one.name}.json").read_text())]
    found = planned(one)
    wanted = found.wanted if found is not None else steps[0][1]
    said = (found.lowest, found.below_s) if found is not None else (steps[0][1], 0.0)
    ends = [at for at, _ in steps[1:]] + [one.watched_s]
    below_s = sum(end - at for (at, count), end in zip(steps, ends, strict=True) if count < wanted)
    return Beside(one.name, one.kind, wanted, said, (min(count for _, count in steps), round(below_s, 1)))


def planned(one: Probed) -> Availability | None:
    """What the plan says of the Service; None: that nothing changes."""
    does = tuple(Apply(_bare(change.doc)) if isinstance(change, Apply) else change for change in one.changes)
    answer = plan(load(PLACE / f"{one.name}.kcm"), does, Options(horizon_s=one.watched_s, namespace=one.name))
    return next(
        (each for each in answer.availability if (each.about.kind, each.about.name) == ("Service", SERVICE)), None
    )


def _bare(value: Any) -> Any:
    """Without the annotations that say what simulated pods and nodes do."""
    if isinstance(value, dict):
        return {name: _bare(inner) for name, inner in value.items() if not name.startswith((PREFIX, f"f:{PREFIX}"))}
    return [_bare(inner) for inner in value] if isinstance(value, list) else value


def bare(snapshot: Snapshot) -> Snapshot:
    """The same of a whole cluster."""
    collections = {}
    for gvr, one in snapshot.collections.items():
        items = tuple(replace(item, data=codec.encode(_bare(codec.decode_doc(item.data)))) for item in one.items)
        collections[gvr] = replace(one, items=items)
    return replace(snapshot, collections=collections)


BEGIN, END = "<!-- probed -->", "<!-- /probed -->"


def table(found: Sequence[Beside]) -> Iterator[str]:
    """The tables of docs/plan.md."""
    yield "| change | wanted | lowest: plan | prober | too few for: plan | prober |"
    yield "| --- | --- | --- | --- | --- | --- |"
    for one in found:
        mark = "" if one.agrees else " **differs**"
        yield (
            f"| {one.name}{mark} | {one.wanted} | {one.planned[0]} | {one.seen[0]} "
            f"| {one.planned[1]:.0f} s | {one.seen[1]:.0f} s |"
        )
    yield ""
    yield "| kind of event | changes | lowest number agrees | time agrees, too |"
    yield "| --- | --- | --- | --- |"
    for kind in (*sorted({one.kind for one in found}), ""):
        these = [one for one in found if kind in (one.kind, "")]
        lowest, both = sum(one.planned[0] == one.seen[0] for one in these), sum(one.agrees for one in these)
        yield f"| {kind or 'all'} | {len(these)} | {lowest} | {both} |"


# -- recording


class _Recorder(Recorder):
    """seen: what the prober writes."""

    seen: Path

    async def play(self, one: Scenario) -> None:
        reader = Client(ReadOnly(self.transport), limiter=Unlimited(), user_agent="plan", clock=self.clock)
        save(bare(reduced(await collect(reader, self.clock), one.name)), PLACE / f"{one.name}.kcm")
        began = datetime.now(UTC).timestamp()
        tasks = [asyncio.ensure_future(self.act(change, one.name)) for change in one.changes]
        await self.clock.sleep(one.watched_s)
        for task in tasks:
            task.cancel()
        for error in await asyncio.gather(*tasks, return_exceptions=True):
            if isinstance(error, Exception):
                print(f"{one.name}: {error!r}", flush=True)
        steps = sightings(self.seen, one.name, SERVICE, began, began + one.watched_s)
        (PLACE / f"{one.name}.json").write_text(json.dumps(steps) + "\n")
        print(f"{one.name}: {steps}", flush=True)


async def _run(folder: Path, audit: Path, some: Sequence[Probed], seen: Path) -> None:
    clock = LoopClock()
    found = await access.load(path=str(folder / "kubeconfig"), master="", clock=clock)
    transport = Authorized(Session(found, clock), found.credentials)
    await clock.sleep(5)  # for the namespaces that the API server makes
    async with simulated(transport, clock, random.Random(1), NodeOptions(0)).running():
        recorder = _Recorder(transport, clock, audit)
        recorder.seen = seen
        recorder.known = await discover(recorder.client)
        metrics = MetricsApi(recorder.usage)
        await metrics.start(recorder.client, folder)
        for at in range(0, len(some), _BATCH):
            await recorder.batch(some[at : at + _BATCH])
        await metrics.stop()


def main(arguments: Sequence[str]) -> None:
    if "--write" in arguments:
        page = ROOT / "docs" / "plan.md"
        before, _, rest = page.read_text().partition(BEGIN)
        lines = table([beside(one) for one in recorded()])
        page.write_text("\n".join([f"{before}{BEGIN}", "", *lines, "", f"{END}{rest.partition(END)[2]}"]))
        return
    some = [one for one in changes() if not arguments or one.name in arguments]
    some.sort(key=lambda one: one.watched_s)
    PLACE.mkdir(parents=True, exist_ok=True)
    with (
        real_cluster(Path(os.environ["KUBEBUILDER_ASSETS"])) as (_, folder, audit),
        Processes() as processes,
        tempfile.TemporaryDirectory() as place,
    ):
        seen = Path(place) / "seen"
        seen.touch()
        words = [sys.executable, "-m", "tests.plans.prober", f"{folder}/kubeconfig", str(seen)]
        processes.start(*words, log=Path(place) / "prober.log")
        asyncio.run(_run(folder, audit, some, seen))
    for one in some:
        print(beside(one))


if __name__ == "__main__":
    main(sys.argv[1:])
