"""Lets an incident happen in a sandbox with kcm on virtual time, and traces it from kcm's record and the cluster, and
from the sandbox's audit log.

    python -m tests.incidents.simulated [--first 1] [--seeds 50] [NAME...]

plays each incident with so many seeds, and prints what is told otherwise than the table says.
"""

import argparse
import io
import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from kcm_cli.machinery import codec
from kcm_cli.machinery.times import format_micro_time
from kcm_cli.planning.actions import APPLY, MERGE, STRATEGIC_MERGE
from kcm_cli.rest.client import Client
from kcm_cli.rest.errors import ApiError, NotFound, TooManyRequests
from kcm_cli.rest.ratelimit import Unlimited
from kcm_cli.rest.transport import Request
from kcm_cli.runtime.cause_document import About, CausesDocument, document
from kcm_cli.runtime.cause_ring import CauseRing, Entry, Sync, Wrote
from kcm_cli.sandbox.apiserver.entrance import Exchange
from kcm_cli.sandbox.apiserver.entry.audit_log import event_of
from kcm_cli.sandbox.apiserver.entry.audit_policy import DEFAULT
from kcm_cli.sandbox.apiserver.types import User
from kcm_cli.sandbox.nodes import shape
from kcm_cli.sandbox.nodes.agents import NodeOptions
from kcm_cli.sandbox.usage.api import MetricsApi
from kcm_cli.sandbox.views import NODES
from kcm_cli.trace.audit import AuditLog
from kcm_cli.trace.behind import Linked, combined
from kcm_cli.trace.history import History
from kcm_cli.trace.join import Target, Trace, trace
from kcm_cli.trace.observer import Observer, Wanted
from kcm_cli.trace.text import head, lines
from tests.incidents.table import EXACT, INCIDENTS, RING, Incident
from tests.kit.simulation import World, simulate
from tests.kit.space import POOL, Space, Tree

_PLURALS = {
    "Deployment": "/apis/apps/v1/namespaces/{}/deployments",
    "StatefulSet": "/apis/apps/v1/namespaces/{}/statefulsets",
    "DaemonSet": "/apis/apps/v1/namespaces/{}/daemonsets",
    "Job": "/apis/batch/v1/namespaces/{}/jobs",
    "ResourceQuota": "/api/v1/namespaces/{}/resourcequotas",
    "PodDisruptionBudget": "/apis/policy/v1/namespaces/{}/poddisruptionbudgets",
    "HorizontalPodAutoscaler": "/apis/autoscaling/v2/namespaces/{}/horizontalpodautoscalers",
    "ValidatingAdmissionPolicy": "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies",
    "ValidatingAdmissionPolicyBinding": "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings",
    "ValidatingWebhookConfiguration": "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations",
}
ALICE = User("alice", groups=("system:masters", "system:authenticated"))
_WORDS = {"deploy": "Deployment", "deploy/web": "Deployment", "sts": "StatefulSet", "job": "Job"}
_FLAGS = (
    "--node-monitor-grace-period=30s",
    "--horizontal-pod-autoscaler-sync-period=5s",
    "--horizontal-pod-autoscaler-cpu-initialization-period=1s",
    "--horizontal-pod-autoscaler-initial-readiness-delay=0s",
)


class _Stage:
    def __init__(self, world: World, one: Incident) -> None:
        self.world, self.one, self.space = world, one, Space(one.name)
        self.client = Client(
            world.server.transport(ALICE), limiter=Unlimited(), user_agent="kubectl/v1.36.0", clock=world.clock
        )

    async def send(self, method: str, path: str, body: Any = None, kind: str = MERGE) -> bytes:
        headers = {"content-type": kind if method == "PATCH" else "application/json"}
        query = (("fieldManager", "kubectl"),) if method == "PATCH" else ()
        return await self.client.call(Request(method, path, query, headers, codec.encode(body) if body else b""))

    async def apply(self, doc: Tree) -> None:
        path = f"{_PLURALS[doc['kind']].format(self.one.name)}/{doc['metadata']['name']}"
        await self.send("PATCH", path, doc, APPLY)

    async def act(self, act: Any) -> None:
        if isinstance(act, dict):
            await self.apply(act)
            return
        words = act.replace("{name}", self.one.name).split()
        match words:
            case ["scale", word, name, flag]:
                replicas = int(flag.partition("=")[2])
                await self.send("PATCH", f"{self.path(word)}/{name}/scale", {"spec": {"replicas": replicas}})
            case ["set", "image", word, image]:
                patch = {"spec": {"template": {"spec": {"containers": [{"name": "c", "image": image[2:]}]}}}}
                await self.send("PATCH", f"{self.path(word)}/web", patch, STRATEGIC_MERGE)
            case ["patch", word, name, _, "-p", text]:
                await self.send("PATCH", f"{self.path(word)}/{name}", codec.decode_doc(text.encode()))
            case [_, "node", *_]:
                await self.act_on_node(words)
            case ["load", number]:
                note = {"sandbox.kcm.dev/cpu-total": f"{4 * int(number)}m"}
                await self.send("PATCH", f"{self.path('deploy')}/web", {"metadata": {"annotations": note}})
                await self.world.clock.sleep(25)
            case ["delete", "deploy", name]:
                await self.send("DELETE", f"{self.path('deploy')}/{name}", {"propagationPolicy": "Background"})
            case ["delete", "namespace", name, _]:
                await self.send("DELETE", f"/api/v1/namespaces/{name}")
            case ["delete", "pod", "--all"]:
                for name in await self.pods():
                    await self.send("DELETE", f"/api/v1/namespaces/{self.one.name}/pods/{name}")
            case ["drain", name, *_]:
                await self.drain(name)
            case _:
                raise AssertionError(act)

    async def act_on_node(self, words: list[str]) -> None:
        match words:
            case ["annotate", "node", name, note]:
                key, _, value = note.partition("=")
                await self.send("PATCH", f"/api/v1/nodes/{name}", {"metadata": {"annotations": {key: value}}})
            case ["label", "node", name, label]:
                await self.send("PATCH", f"/api/v1/nodes/{name}", {"metadata": {"labels": {label[:-1]: None}}})
            case ["taint", "node", name, taint]:
                key, _, rest = taint.partition("=")
                value, _, effect = rest.partition(":")
                taints = [{"key": key, "value": value, "effect": effect}]
                await self.send("PATCH", f"/api/v1/nodes/{name}", {"spec": {"taints": taints}})
            case ["delete", "node", name]:
                await self.send("DELETE", f"/api/v1/nodes/{name}")
            case _:
                raise AssertionError(words)

    async def drain(self, node: str) -> None:
        await self.send("PATCH", f"/api/v1/nodes/{node}", {"spec": {"unschedulable": True}})
        for name in await self.pods(node):
            body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}}
            try:
                await self.send("POST", f"/api/v1/namespaces/{self.one.name}/pods/{name}/eviction", body)
            except TooManyRequests:
                pass  # a budget does not allow it

    def path(self, word: str) -> str:
        return _PLURALS[_WORDS[word]].format(self.one.name)

    async def pods(self, node: str = "") -> list[str]:
        pods = self.world.objects("v1/pods", self.one.name)
        return sorted(one["metadata"]["name"] for one in pods if not node or one["spec"].get("nodeName") == node)  # type: ignore[index]

    async def begin(self) -> None:
        await self.send("POST", "/api/v1/namespaces", {"metadata": {"name": self.one.name}})
        await self.world.clock.sleep(2)
        for number in range(1, self.one.nodes + 1):
            notes = {shape.SIMULATED: "true", shape.CAPACITY: "cpu=4,memory=16Gi"}
            metadata = {
                "name": f"{self.one.name}-{number}",
                "labels": {POOL: self.one.name},
                "annotations": notes,
            }
            await self.client.create(NODES, "", {"metadata": metadata})
        await self.world.clock.sleep(10)
        for doc in self.one.setup(self.space):
            await self.apply(doc)
        await self.world.clock.sleep(60)


@dataclass(frozen=True)
class Played:
    """What is told of an incident in the end. recorded: by kcm's own record, and the cluster. exact: by the record of a
    sandbox, to which all its parts and the API server contribute. audited: by the API server's audit log."""

    recorded: Trace
    exact: Trace
    audited: Trace


def simulated(one: Incident, seed: int = 2) -> Played:
    """Let it happen; the seed decides on names and times."""

    async def story(world: World) -> Played:
        ring, log = world.causes, bytearray()
        assert ring is not None

        def observe(exchange: Exchange) -> None:
            log.extend(event_of(exchange, DEFAULT, format_micro_time(world.clock.now())) or b"")

        world.server.api.observe(observe)
        world.server.api.aggregate(MetricsApi(world.server.store, world.clock))
        world.manager(flags=_FLAGS, causes=ring)
        stage = _Stage(world, one)
        await stage.begin()
        before, there = set(await stage.pods()), set(await stage.pods(f"{one.name}-1"))
        for act in one.acts(stage.space):
            try:
                await stage.act(act)
            except (ApiError, NotFound) as error:
                raise AssertionError(f"{act}: {error}") from error
        await world.clock.sleep(one.wait_s)
        kind, _, name = one.target.partition("/")
        if kind == "pod":
            after = {pod["metadata"]["name"]: pod for pod in world.objects("v1/pods", one.name)}  # type: ignore[index]
            known = {key.rpartition("/")[2] for key in _seen(ring)}
            ended = {pod for pod in before | known if pod not in after or _ends(after[pod])}
            name = min(pod for pod in (ended or there or before) if pod.startswith(name) and not pod.endswith("-"))
        target = Target(kind, one.name, name)
        asked, _, called = one.observed_target.partition("/")
        about = Target(asked, one.name, called) if asked else target
        own = await _by_record(world, ring, about, is_kcms)
        exact = await _by_record(world, ring, target)
        return Played(own, exact, _by_audit_log(bytes(log), target))

    return simulate(seed, story, NodeOptions(count=0), recorded=True)


def is_kcms(entry: Entry) -> bool:
    """Whether kcm would have recorded it in any cluster."""
    match entry:
        case Wrote():
            return not entry.agent
        case Sync():
            return not entry.controller.startswith(("kube-scheduler", "csi-driver", "kubelet"))
    return True


async def _by_record(
    world: World, ring: CauseRing, target: Target, kept: Callable[[Entry], bool] = lambda entry: True
) -> Trace:
    history = History()
    await Observer(world.client, world.clock, Wanted(target), history).look()
    recorded = causes(ring)
    found = trace(filter(kept, recorded.entries), target, forgotten=recorded.forgotten)
    return combined(found, Linked(history.steps, history.relations))


def _by_audit_log(lines: bytes, target: Target) -> Trace:
    log = AuditLog(target, History())
    log.read(io.BytesIO(lines))
    assert log.bad == 0 and log.lines
    return Linked(log.history.steps, log.history.relations).about(target)


def _ends(pod: Any) -> bool:
    return "deletionTimestamp" in pod["metadata"] or pod["status"].get("phase") == "Failed"


def causes(ring: CauseRing) -> CausesDocument:
    """What /debug/causes answers."""
    return msgspec.json.decode(document(ring.snapshot(), About(), ring.now() + ring.shift), type=CausesDocument)


def _seen(ring: CauseRing) -> set[str]:
    return {one.key for one in ring.snapshot().entries() if isinstance(one, Wrote) and one.kind == "Pod"}


STATES = frozenset(("budget", "unschedulable"))
"""Incidents whose first line is a condition of an object."""


def unlike(text: str, parts: Sequence[str]) -> list[str]:
    """The parts that a text lacks, or has although they start with -."""
    return [part for part in parts if (part[1:] in text if part.startswith("-") else part not in text)]


def problems(one: Incident, seed: int) -> list[str]:
    """What is told otherwise than the table says, or cannot be known."""
    played = simulated(one, seed)
    exact = "\n".join(head(played.exact))
    sources = (
        ("audit log", "\n".join(head(played.audited)), one.audited),
        ("exact", exact, (*EXACT[one.name], *(() if one.name in STATES else ("-inferred",)))),
        ("exact, the whole tree", "\n".join(lines(played.exact, [])), ("-another client",)),
        ("record", "\n".join(head(played.recorded)), RING.get(one.name, one.observed)),
    )
    found = [f"{name}: {bad} in\n{text}" for name, text, parts in sources if (bad := unlike(text, parts))]
    return found + [f"{name}: {len(lost)} nodes of no root" for name, lost in _lost(played) if lost]


def _lost(played: Played) -> Iterator[tuple[str, set[int]]]:
    """Nodes that no root leads to."""
    for name, whole in (("record", played.recorded), ("exact", played.exact)):
        waiting, reached = list(whole.roots), set[int]()
        while waiting:
            node = waiting.pop()
            reached.add(id(node))
            waiting += node.children
        yield name, {id(node) for node in whole.nodes} ^ reached


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--first", type=int, default=1)
    parser.add_argument("--seeds", type=int, default=50)
    parser.add_argument("names", nargs="*")
    given = parser.parse_args()
    logging.disable(logging.CRITICAL)
    failed = 0
    for one in INCIDENTS:
        for seed in range(given.first, given.first + given.seeds) if one.name in (given.names or [one.name]) else ():
            for problem in problems(one, seed):
                failed += 1
                print(f"{one.name}, seed {seed}: {problem}", flush=True)
    print(f"{failed} problems")


if __name__ == "__main__":
    main()
