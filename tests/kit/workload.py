"""Random work for a cluster, and what must hold once everything has settled."""

import random
from collections import Counter
from typing import Any

from kcm_cli.api.apps import DEPLOYMENTS, STATEFUL_SETS
from kcm_cli.api.resource import Resource
from kcm_cli.machinery.codec import Doc
from kcm_cli.planning.actions import MERGE
from tests.kit.simulation import NAMESPACE, World

Tree = dict[str, Any]


def template(name: str, image: str, **spec: object) -> Tree:
    return {"metadata": {"labels": {"app": name}}, "spec": {"containers": [{"name": "c", "image": image}], **spec}}


def deployment(name: str, replicas: int, image: str = "v1") -> Tree:
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": name}},
            "template": template(name, image),
        },
    }


def stateful_set(name: str, replicas: int) -> Tree:
    return {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {
            "replicas": replicas,
            "serviceName": name,
            "selector": {"matchLabels": {"app": name}},
            "template": template(name, "v1"),
        },
    }


def job(name: str, completions: int) -> Tree:
    once = template(name, "v1", restartPolicy="Never")
    once["metadata"]["annotations"] = {"sandbox.kcm.dev/run-time": "5s"}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {"completions": completions, "parallelism": 2, "template": once},
    }


class Workload:
    """Does one random thing after another; knows what should be there in the end."""

    def __init__(self, world: World, rng: random.Random) -> None:
        self._world = world
        self._rng = rng
        self.deployments: dict[str, int] = {}
        self.stateful_sets: dict[str, int] = {}
        self.jobs: dict[str, int] = {}
        self._count = 0

    async def step(self) -> None:
        await self._rng.choice((self._new, self._new, self._scale, self._scale, self._roll, self._delete))()

    async def _new(self) -> None:
        self._count += 1
        size = self._rng.randint(0, 6)
        kind = self._rng.choice(("deployments", "deployments", "statefulsets", "jobs"))
        name = f"{kind[:3]}{self._count}"
        if kind == "deployments":
            await self._world.create("apps/v1/deployments", deployment(name, size))
            self.deployments[name] = size
        elif kind == "statefulsets":
            await self._world.create("apps/v1/statefulsets", stateful_set(name, size))
            self.stateful_sets[name] = size
        else:
            await self._world.create("batch/v1/jobs", job(name, size + 1))
            self.jobs[name] = size + 1

    async def _scale(self) -> None:
        size = self._rng.randint(0, 6)
        if self.deployments and self._rng.random() < 0.7:
            name = self._rng.choice(sorted(self.deployments))
            await self._patch(DEPLOYMENTS, name, {"spec": {"replicas": size}})
            self.deployments[name] = size
        elif self.stateful_sets:
            name = self._rng.choice(sorted(self.stateful_sets))
            await self._patch(STATEFUL_SETS, name, {"spec": {"replicas": size}})
            self.stateful_sets[name] = size

    async def _roll(self) -> None:
        if self.deployments:
            name = self._rng.choice(sorted(self.deployments))
            image = f"v{self._rng.randint(1, 4)}"
            await self._patch(DEPLOYMENTS, name, {"spec": {"template": template(name, image)}})

    async def _delete(self) -> None:
        if self.deployments:
            name = self._rng.choice(sorted(self.deployments))
            await self._world.client.delete(DEPLOYMENTS, NAMESPACE, name, propagation="Background")
            del self.deployments[name]

    async def _patch(self, resource: Resource[Any], name: str, body: Doc) -> None:
        await self._world.client.patch(resource, NAMESPACE, name, body, content_type=MERGE)


def unsettled(world: World, work: Workload) -> list[str]:
    """What is not (yet) as it should be; empty once everything has settled."""
    found = [*_counts(world, "apps/v1/deployments", work.deployments)]
    found += _counts(world, "apps/v1/statefulsets", work.stateful_sets)
    done = {d["metadata"]["name"]: d.get("status", {}) for d in _trees(world, "batch/v1/jobs")}
    for name, wanted in work.jobs.items():
        status = done.get(name, {})
        if status.get("succeeded") != wanted or "completionTime" not in status:
            found.append(f"job {name}: {status}")
    return found + _pods(world, work)


def _counts(world: World, path: str, wanted: dict[str, int]) -> list[str]:
    there = {d["metadata"]["name"]: d for d in _trees(world, path)}
    found = [f"{path} {name} is still there" for name in there.keys() - wanted.keys()]
    for name, size in wanted.items():
        doc = there.get(name)
        status = doc.get("status", {}) if doc is not None else {}
        seen = doc is not None and status.get("observedGeneration") == doc["metadata"]["generation"]
        sizes = [status.get(f, 0) for f in ("replicas", "readyReplicas", "updatedReplicas")]
        if not seen or sizes != [size] * 3:
            found.append(f"{path} {name} wants {size}: {status}")
    return found


def _pods(world: World, work: Workload) -> list[str]:
    """Every workload has exactly its desired pods, and no pod is left."""
    alive = [p for p in _trees(world, "v1/pods") if p["status"]["phase"] in ("Pending", "Running")]
    have = Counter(p["metadata"]["labels"]["app"] for p in alive)
    want = Counter({k: v for k, v in (work.deployments | work.stateful_sets).items() if v})
    return [] if have == want else [f"pods: have {dict(have)}, want {dict(want)}"]


def _trees(world: World, path: str) -> list[Tree]:
    return [dict(doc) for doc in world.objects(path)]
