"""Random lives of workloads under kcm and under Go's manager, in turn, on one real kube-apiserver: do they end alike?

    KUBEBUILDER_ASSETS=DIR python -m tests.differential.lives [--lives 60] [--seed 1] [--at-once 20] [--only KIND]

DIR has etcd, kube-apiserver and kube-controller-manager. A life is one workload in a namespace of its own: people
scale, change, pause and relabel, pods start, break and end, and policies refuse some writes of the manager. After each
step the namespace comes to rest, and what there is goes into a picture without names, times and uids that are random.
The pictures of both managers are compared, step by step. What differs is on the pages deviations and upstream-bugs, or
one of the managers was slower than the rest lasts, or it is a bug.
"""

import argparse
import asyncio
import json
import os
import random
import sys
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.differential.living import Doc, Life, Mirror, Scene, api, arguments, chosen, compare, many, wanted_node
from tests.kit.processes import KCM, Processes, free_port
from tests.kit.servers import kubeconfig, real_server

CONTROLLERS = "deployment,replicaset,replicationcontroller,statefulset,daemonset,job,disruption"
PATHS = {
    "deployments": "apis/apps/v1", "replicasets": "apis/apps/v1", "statefulsets": "apis/apps/v1",
    "daemonsets": "apis/apps/v1", "controllerrevisions": "apis/apps/v1", "jobs": "apis/batch/v1",
    "poddisruptionbudgets": "apis/policy/v1", "pods": "api/v1", "replicationcontrollers": "api/v1",
    "persistentvolumeclaims": "api/v1",
}  # fmt: skip
REFUSALS = {
    "shrink": ("apps", "replicasets", "UPDATE", "object.spec.replicas >= oldObject.spec.replicas"),
    "grow": ("apps", "replicasets", "UPDATE", "object.spec.replicas <= oldObject.spec.replicas"),
    "rs": ("apps", "replicasets", "CREATE", "false"),
    "revision": ("apps", "controllerrevisions", "CREATE", "false"),
    "pod": ("", "pods", "CREATE", "false"),
    "kill": ("", "pods", "DELETE", "false"),
    "claim": ("", "persistentvolumeclaims", "CREATE", "false"),
}
"""Writes of the manager that a policy refuses in namespaces with the label ``refuse``."""
MANAGER, PEOPLE = "admin", {"Impersonate-User": "people", "Impersonate-Group": "system:masters"}
ACTS_S = 60.0
"""The longest time until a manager acts after its start."""
OBSERVED = {"observedGeneration", "startTime"}
"""Fields of a status that the controller of the kind sets first."""
BROKEN = "bad"
"""The image whose pods never become ready."""


def template(image: str = "v1", **spec: Any) -> Doc:
    pod = {"containers": [{"name": "c", "image": image}], "terminationGracePeriodSeconds": 0, **spec}
    return {"metadata": {"labels": {"app": "w"}}, "spec": pod}


@dataclass
class Place(Scene):
    """A namespace whose manager can be refused some writes."""

    async def refuse(self, what: str | None) -> None:
        body = {"metadata": {"labels": {"refuse": what}}}
        await self.api.ask("PATCH", f"/api/v1/namespaces/{self.namespace}", body)
        await asyncio.sleep(1.5)  # until the policies see the label

    def pods(self) -> list[Doc]:
        """The living pods, in an order that does not depend on random names."""
        living = [pod for pod in self.items("pods") if "deletionTimestamp" not in pod["metadata"]]
        return sorted(living, key=lambda pod: (json.dumps(face(pod)), pod["metadata"]["creationTimestamp"]))

    # -- the work of kubelets

    async def kubelets(self) -> None:
        for pod in self.items("pods"):
            name, status = pod["metadata"]["name"], pod.get("status", {})
            if "deletionTimestamp" in pod["metadata"]:
                if not pod["metadata"].get("finalizers"):
                    await self.delete("pods", name)
                elif status.get("phase") in ("Pending", "Running"):
                    await self.end(name, "Failed")
                continue
            if not pod["spec"].get("nodeName") and (node := wanted_node(pod)):
                binding = {"metadata": {"name": name}, "target": {"kind": "Node", "name": node}}
                await self.api.ask("POST", self.path("pods", name) + "/binding", binding)
            seen = any(c["type"] == "Ready" for c in status.get("conditions", []))
            if status.get("phase") == "Pending" and not seen:
                await self.ready(name, pod["spec"]["containers"][0]["image"] != BROKEN)

    async def ready(self, name: str, up: bool) -> None:
        condition = {"type": "Ready", "status": str(up), "lastTransitionTime": "2026-01-01T00:00:00Z"}
        body = {"status": {"phase": "Running" if up else "Pending", "conditions": [condition]}}
        await self.patch("pods", name, body, "/status")

    async def end(self, name: str, phase: str) -> None:
        await self.patch("pods", name, {"status": {"phase": phase, "conditions": []}}, "/status")

    def picture(self) -> list[str]:
        found: list[str] = []
        for plural in PATHS:
            found += [f"{plural} {json.dumps(face(obj), sort_keys=True)}" for obj in self.items(plural)]
        return sorted(found)


SAME = ("deployment.kubernetes.io/", "batch.kubernetes.io/job-index", "batch.kubernetes.io/job-completion-index")
LABELS = (
    *("app", "pod-template-hash", "controller-revision-hash"),
    *("statefulset.kubernetes.io/pod-name", "apps.kubernetes.io/pod-index"),
)


def face(obj: Doc) -> Doc:
    """What is the same for the same history."""
    meta, status, spec = obj["metadata"], dict(obj.get("status") or {}), obj.get("spec") or {}
    kept: Doc = {
        "name": "" if meta.get("generateName") else meta["name"],
        "owners": sorted(f"{ref['kind']} {ref['controller']}" for ref in meta.get("ownerReferences", ())),
        "labels": {k: v for k, v in meta.get("labels", {}).items() if k in LABELS},
        "annotations": {k: v for k, v in meta.get("annotations", {}).items() if k.startswith(SAME)},
        "finalizers": meta.get("finalizers", []),
        "deleting": "deletionTimestamp" in meta,
    }
    if "containers" in spec:
        ready = [c["status"] for c in status.get("conditions", ()) if c["type"] == "Ready"]
        return {**kept, "phase": status.get("phase"), "ready": ready, "bound": "nodeName" in spec}
    for name in ("startTime", "completionTime", "collisionCount", "disruptedPods"):
        status.pop(name, None)
    if "conditions" in status:
        conditions = sorted((c["type"], c["status"], c.get("reason", "")) for c in status["conditions"])
        status["conditions"] = conditions
    if "uncountedTerminatedPods" in status:
        status["uncountedTerminatedPods"] = {k: len(v) for k, v in status["uncountedTerminatedPods"].items()}
    unobserved = meta.get("generation", 0) - status.pop("observedGeneration", meta.get("generation", 0))
    numbers = {"replicas": spec.get("replicas"), "unobserved": unobserved, "revision": obj.get("revision")}
    return {**kept, **numbers, "status": status}


# -- lives

Step = Callable[[Place, random.Random], Awaitable[float]]
"""Does something; how long, in seconds, it takes until its consequences."""


def change(plural: str, make: Callable[[random.Random], Doc]) -> Step:
    async def step(place: Place, rng: random.Random) -> float:
        await place.patch(plural, "w", {"spec": make(rng)})
        return 0.0

    return step


def choose(rng: random.Random, pods: list[Doc]) -> list[Doc]:
    """A pod of those that look most alike, so that it does not matter which one."""
    faces = sorted({json.dumps(face(pod), sort_keys=True) for pod in pods})
    if not faces:
        return []
    chosen = rng.choice(faces)
    return [pod for pod in pods if json.dumps(face(pod), sort_keys=True) == chosen][:1]


def to_pod(act: Callable[[Place, str], Awaitable[None]], takes_s: float = 0.0) -> Step:
    async def step(place: Place, rng: random.Random) -> float:
        running = [pod for pod in place.pods() if pod["status"].get("phase") in ("Running", "Pending")]
        for pod in choose(rng, running):
            await act(place, pod["metadata"]["name"])
            return takes_s
        return 0.0

    return step


async def relabel(place: Place, name: str) -> None:
    """Change a pod's label, and the budget, since Go's disruption controller misses the first change."""
    await place.patch("pods", name, {"metadata": {"labels": {"app": "x"}}})
    await asyncio.sleep(0.5)
    await place.patch("poddisruptionbudgets", "w", {"metadata": {"annotations": {"touched": name}}})


async def stray(place: Place, rng: random.Random) -> float:
    """A pod of somebody else that the selector matches."""
    metadata = {"generateName": "stray-", "labels": {"app": "w"}}
    await place.create("pods", {"metadata": metadata, "spec": template(restartPolicy="Never")["spec"]})
    return 1.0


def refusing(*kinds: str) -> Step:
    async def step(place: Place, rng: random.Random) -> float:
        await place.refuse(rng.choice((None, *kinds)))
        return 0.0

    return step


DELETE = to_pod(lambda place, name: place.delete("pods", name))
UNREADY = to_pod(lambda place, name: place.ready(name, False))
RELEASE = to_pod(relabel, 1.0)
FREE = to_pod(lambda place, name: place.patch("pods", name, {"metadata": {"ownerReferences": None}}), 1.5)
FAIL = to_pod(lambda place, name: place.end(name, "Failed"))
FAIL_JOB = to_pod(lambda place, name: place.end(name, "Failed"), 13.0)
SUCCEED = to_pod(lambda place, name: place.end(name, "Succeeded"), 2.0)


def scale(plural: str) -> Step:
    return change(plural, lambda rng: {"replicas": rng.randint(0, 5)})


def image(plural: str) -> Step:
    return change(plural, lambda rng: {"template": template(rng.choice(("v1", "v2", "v3", "bad")))})


def selected(**spec: Any) -> Doc:
    return {"selector": {"matchLabels": {"app": "w"}}, "template": template(), **spec}


def deployment(rng: random.Random) -> Doc:
    surge, unavailable = {"maxSurge": 1, "maxUnavailable": 0}, {"maxUnavailable": 1}
    strategy = rng.choice(({"type": "Recreate"}, {"rollingUpdate": surge}, {"rollingUpdate": unavailable}))
    return selected(replicas=rng.randint(1, 4), strategy=strategy, revisionHistoryLimit=rng.randint(0, 3))


def partitioned(partition: int) -> Doc:
    return {"type": "RollingUpdate", "rollingUpdate": {"partition": partition}}


def stateful_set(rng: random.Random) -> Doc:
    size = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1"}}}
    claim = {"metadata": {"name": "d"}, "spec": size}
    policies = ("Retain", "Delete")
    return selected(
        replicas=rng.randint(1, 4),
        serviceName="w",
        podManagementPolicy=rng.choice(("OrderedReady", "Parallel")),
        updateStrategy=rng.choice((partitioned(0), partitioned(1))),
        volumeClaimTemplates=[claim] if rng.random() < 0.5 else [],
        persistentVolumeClaimRetentionPolicy={"whenDeleted": rng.choice(policies), "whenScaled": rng.choice(policies)},
    )


def job(rng: random.Random) -> Doc:
    spec: Doc = {"completions": rng.randint(1, 4), "parallelism": rng.randint(1, 3), "backoffLimit": rng.randint(0, 3)}
    if rng.random() < 0.5:
        spec |= {"completionMode": "Indexed"}
        if rng.random() < 0.5:
            spec |= {"backoffLimitPerIndex": 1}
    if rng.random() < 0.3:
        spec |= {"podReplacementPolicy": "Failed"}
    return {"manualSelector": True, **selected(), "template": template(restartPolicy="Never"), **spec}


def daemon_set(rng: random.Random) -> Doc:
    update = rng.choice(({"maxUnavailable": 1}, {"maxUnavailable": 2}, {"maxSurge": 1, "maxUnavailable": 0}))
    return selected(updateStrategy={"type": "RollingUpdate", "rollingUpdate": update}, revisionHistoryLimit=1)


@dataclass(frozen=True)
class Kind:
    plural: str
    make: Callable[[random.Random], Doc]
    steps: tuple[Step, ...]


KINDS = {
    "deployment": Kind("deployments", deployment, (
        scale("deployments"), image("deployments"), image("deployments"), DELETE, UNREADY,
        change("deployments", lambda rng: {"paused": rng.random() < 0.5}),
        change("deployments", lambda rng: {"minReadySeconds": rng.choice((0, 1))}),
        refusing("shrink", "grow", "rs", "pod"),
    )),
    "replicaset": Kind("replicasets", lambda rng: selected(replicas=rng.randint(1, 4)), (
        scale("replicasets"), DELETE, UNREADY, RELEASE, FREE, stray, FAIL, refusing("pod", "kill"),
    )),
    "replicationcontroller": Kind(
        "replicationcontrollers",
        lambda rng: {"replicas": rng.randint(1, 4), "selector": {"app": "w"}, "template": template()},
        (scale("replicationcontrollers"), DELETE, UNREADY, RELEASE, stray, FAIL, refusing("pod", "kill")),
    ),
    "statefulset": Kind("statefulsets", stateful_set, (
        scale("statefulsets"), image("statefulsets"), DELETE, UNREADY, FAIL, RELEASE,
        change("statefulsets", lambda rng: {"updateStrategy": partitioned(rng.randint(0, 3))}),
        change("statefulsets", lambda rng: {"ordinals": {"start": rng.randint(0, 2)}}),
        refusing("pod", "kill", "claim", "revision"),
    )),
    "daemonset": Kind("daemonsets", daemon_set, (
        image("daemonsets"), DELETE, UNREADY, FAIL, stray, refusing("pod", "kill", "revision"),
        change("daemonsets", lambda rng: {"template": {"spec": {"nodeSelector": rng.choice((None, {"zone": "a"}))}}}),
    )),
    "job": Kind("jobs", job, (
        SUCCEED, SUCCEED, FAIL_JOB, DELETE, FREE, stray, RELEASE,
        change("jobs", lambda rng: {"suspend": rng.random() < 0.5}),
        change("jobs", lambda rng: {"parallelism": rng.randint(0, 3)}),
        change("jobs", lambda rng: dict.fromkeys(("parallelism", "completions"), rng.randint(1, 4))),
        refusing("pod", "kill"),
    )),
}  # fmt: skip


async def live(place: Place, seed: int, only: list[str]) -> Life:
    """One life."""
    rng, server = random.Random(seed), place.api
    name = chosen(rng, KINDS, only)
    kind = KINDS[name]
    await server.ask("POST", "/api/v1/namespaces", {"metadata": {"name": place.namespace}})
    accounts = f"/api/v1/namespaces/{place.namespace}/serviceaccounts"
    await server.ask("POST", accounts, {"metadata": {"name": "default"}})
    budget = {"maxUnavailable": 1, "selector": {"matchLabels": {"app": "w"}}}
    await place.create("poddisruptionbudgets", {"metadata": {"name": "w"}, "spec": budget})
    await place.create(kind.plural, {"metadata": {"name": "w"}, "spec": kind.make(rng)})
    await place.rest(0.5)
    pictures = [(f"create {name}", place.picture())]
    for number in range(rng.randint(4, 8)):
        index = rng.randrange(len(kind.steps))
        takes_s = await kind.steps[index](place, random.Random(seed * 100 + number))
        await place.rest(takes_s)
        await place.patch(kind.plural, "w", {"metadata": {"annotations": {"step": str(number)}}})  # no wait for a retry
        await place.rest(0.5)
        pictures.append((f"step {index}", place.picture()))
    await place.refuse(None)
    await place.patch(kind.plural, "w", {"metadata": {"annotations": {"again": "1"}}})
    await place.rest(1.0)
    pictures.append(("all allowed", place.picture()))
    await place.delete(kind.plural, "w")
    return pictures


async def lives(url: str, manager: str, options: argparse.Namespace) -> dict[int, Life]:
    seeds = range(options.seed, options.seed + options.lives)
    async with following(url, **PEOPLE) as mirror:
        mirror.patience = options.patience
        return await many(seeds, options.at_once, lambda n: live(Place(mirror, f"{manager}-{n}"), n, options.only))


@asynccontextmanager
async def following(url: str, **headers: str) -> AsyncIterator[Mirror]:
    async with api(url, **headers) as server:
        mirror = Mirror(server, PATHS, lambda plural, obj: obj["metadata"]["namespace"])
        async with mirror.following():
            yield mirror


async def prepare(url: str) -> None:
    """Create nodes and policies."""
    async with api(url) as server:
        for number, zone in enumerate("aab"):
            await server.ask("POST", "/api/v1/nodes", {"metadata": {"name": f"n{number}", "labels": {"zone": zone}}})
            await server.ask("PATCH", f"/api/v1/nodes/n{number}", {"spec": {"taints": None}})
        for name, (group, plural, verb, allowed) in REFUSALS.items():
            rules = [{"apiGroups": [group], "apiVersions": ["v1"], "operations": [verb], "resources": [plural]}]
            spec = {
                "matchConstraints": {"resourceRules": rules, "namespaceSelector": {"matchLabels": {"refuse": name}}},
                "matchConditions": [{"name": "manager", "expression": f"request.userInfo.username == '{MANAGER}'"}],
                "validations": [{"expression": allowed, "message": "no"}],
            }
            binding = {"policyName": name, "validationActions": ["Deny"]}
            path = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolic"
            await server.ask("POST", f"{path}ies", {"metadata": {"name": name}, "spec": spec})
            await server.ask("POST", f"{path}ybindings", {"metadata": {"name": name}, "spec": binding})
    await asyncio.sleep(3)


async def acting(url: str, manager: str) -> None:
    """Wait until a manager acts. Raises TimeoutError if it does not, as if it has ended at its start."""
    async with following(url) as mirror, asyncio.timeout(ACTS_S):
        place = Place(mirror, f"{manager}-acts")
        await mirror.api.ask("POST", "/api/v1/namespaces", {"metadata": {"name": place.namespace}})
        for kind in KINDS.values():
            await place.create(kind.plural, {"metadata": {"name": "w"}, "spec": kind.make(random.Random(0))})
        for plural in (kind.plural for kind in KINDS.values()):
            while not any(OBSERVED & one.get("status", {}).keys() for one in place.items(plural)):
                await asyncio.sleep(0.5)
            await place.delete(plural, "w")


def main() -> int:
    options = arguments(__doc__, KINDS).parse_args()
    assets = Path(os.environ["KUBEBUILDER_ASSETS"])
    programs = {"go": (f"{assets}/kube-controller-manager",), "kcm": KCM}
    results = {}
    with tempfile.TemporaryDirectory() as folder, real_server(assets, Path(folder)) as url:
        config = Path(folder) / "kubeconfig"
        config.write_text(kubeconfig(url))
        asyncio.run(prepare(url))
        for name, program in programs.items():
            flags = [
                f"--kubeconfig={config}", f"--secure-port={free_port()}", f"--controllers={CONTROLLERS}",
                "--leader-elect=false", "--kube-api-qps=500", "--kube-api-burst=1000",
            ]  # fmt: skip
            with Processes() as processes:
                log = Path(folder) / f"{name}.log"
                process = processes.start(*program, *flags, log=log)
                asyncio.run(acting(url, name))
                results[name] = asyncio.run(lives(url, name, options))
                assert process.poll() is None, f"{name} has ended: {log.read_text()[-2000:]}"
    return 1 if compare(results["kcm"], results["go"]) else 0


if __name__ == "__main__":
    sys.exit(main())
