"""What a plan costs: a drain on twins of larger clusters, one JSON line each.

python -m tests.bench.plan [NODES PODS SECONDS]...
"""

import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from copy import deepcopy
from typing import Any

from msgspec.structs import replace

from kcm_cli.api.resource import GVR
from kcm_cli.machinery import codec
from kcm_cli.plan import Drain, Options, Snapshot, plan
from kcm_cli.plan.snapshot import Item
from tests.kit.simulation import NAMESPACE, World
from tests.kit.workload import deployment
from tests.unit.plan.clusters import service, snapshot_of

Tree = dict[str, Any]
SIZES = ((100, 3_000, 3600.0), (1_000, 30_000, 3600.0))
REPLICAS = 30
GROUPS = 10
"""Deployments in a namespace."""
ZONE = "zone-b"
"""Of node-1, and of all that are made after it."""
_GROUP = ("deployments", "replicasets", "services", "endpointslices", "endpoints")
_OF_SPACE = ("namespaces", "serviceaccounts")
_OF_NODE = ("nodes", "leases", "csinodes")


async def _one_of_each(world: World) -> None:
    doc = deployment("web", 1)
    doc["spec"]["template"]["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "500m", "memory": "1Gi"}}
    await world.create("apps/v1/deployments", doc)
    await world.create("v1/services", service("web"))
    await world.clock.sleep(60)


def cluster(nodes: int, pods: int) -> Snapshot:
    """A settled cluster of so many nodes, with Deployments of 30 pods and a Service each."""
    small = snapshot_of(_one_of_each)
    made: dict[GVR, list[Tree]] = {gvr: [] for gvr in small.collections}
    templates = {gvr: [item.doc for item in one.items] for gvr, one in small.collections.items()}
    for gvr, docs in templates.items():
        if gvr.plural in _OF_NODE:
            made[gvr] = [_renamed(docs[0], "node-1", f"node-{n}") for n in range(1, nodes + 1)]
        elif gvr.plural not in (*_GROUP, "pods"):
            made[gvr] = list(docs)
    groups = pods // REPLICAS
    for number in range(groups):
        _group(made, templates, number, nodes)
    for gvr, docs in templates.items():
        own = [doc for doc in docs if gvr.plural in _OF_SPACE and NAMESPACE in _names(doc)]
        made[gvr] += [_renamed(doc, NAMESPACE, _space(n)) for doc in own for n in range(0, groups, GROUPS)]
    collections = {}
    for gvr, docs in made.items():
        items = [_item(doc) for doc in docs]
        items.sort(key=lambda item: (item.namespace, item.name))
        collections[gvr] = replace(small.collections[gvr], items=tuple(items))
    return replace(small, collections=collections)


def _group(made: dict[GVR, list[Tree]], templates: dict[GVR, list[Tree]], number: int, nodes: int) -> None:
    name = f"app-{number}"
    pods: list[Tree] = []
    (pod_gvr,) = (gvr for gvr in templates if gvr.plural == "pods")
    for index in range(REPLICAS):
        pod = _moved(_renamed(templates[pod_gvr][0], "web", name), _space(number))
        place = number * REPLICAS + index
        node = place % nodes + 1
        pod["metadata"] |= {"name": f"{name}-{index:05}", "uid": f"pod-{number}-{index}"}
        pod["spec"]["nodeName"] = f"node-{node}"
        address = f"10.{64 + place // 65536}.{place // 256 % 256}.{place % 256}"
        pod["status"] |= {"podIP": address, "podIPs": [{"ip": address}]}
        pods.append(pod)
    made[pod_gvr] += pods
    for gvr, docs in templates.items():
        if gvr.plural in _GROUP:
            own = [doc for doc in docs if "web" in doc["metadata"]["name"]]
            made[gvr] += [_sized(_moved(_renamed(doc, "web", name), _space(number)), pods) for doc in own]


def _names(doc: Tree) -> tuple[str, str]:
    return doc["metadata"]["name"], doc["metadata"].get("namespace", "")


def _space(number: int) -> str:
    """The namespace of a group of Deployments."""
    return f"team-{number // GROUPS}"


def _moved(doc: Tree, space: str) -> Tree:
    """A copy in another namespace."""
    result: Tree = json.loads(json.dumps(doc).replace(f'"{NAMESPACE}"', f'"{space}"'))
    return result


def _sized(doc: Tree, pods: list[Tree]) -> Tree:
    """A workload of one pod as one of these."""
    spec, status, metadata = doc.get("spec", {}), doc.get("status", {}), doc["metadata"]
    if doc["kind"] in ("Deployment", "ReplicaSet"):
        spec["replicas"] = REPLICAS
        status |= {key: REPLICAS for key, value in status.items() if key.lower().endswith("replicas") and value == 1}
    if doc["kind"] == "ReplicaSet":
        surge = REPLICAS + -(-REPLICAS // 4)
        metadata["annotations"]["deployment.kubernetes.io/desired-replicas"] = str(REPLICAS)
        metadata["annotations"]["deployment.kubernetes.io/max-replicas"] = str(surge)
    if doc["kind"] == "EndpointSlice":
        doc["endpoints"] = [_endpoint(doc["endpoints"][0], pod) for pod in pods]
    if doc["kind"] == "Endpoints":
        first = doc["subsets"][0]["addresses"][0]
        addresses = [_address(first, pod) for pod in pods]
        doc["subsets"][0]["addresses"] = sorted(addresses, key=lambda one: tuple(map(int, one["ip"].split("."))))
    return doc


def _endpoint(template: Tree, pod: Tree) -> Tree:
    found = deepcopy(template) | {"addresses": [pod["status"]["podIP"]], "nodeName": pod["spec"]["nodeName"]}
    found["zone"] = ZONE
    found["targetRef"] |= {key: pod["metadata"][key] for key in ("name", "uid")}
    return found


def _address(template: Tree, pod: Tree) -> Tree:
    found = deepcopy(template) | {"ip": pod["status"]["podIP"], "nodeName": pod["spec"]["nodeName"]}
    found["targetRef"] |= {key: pod["metadata"][key] for key in ("name", "uid")}
    return found


def _renamed(doc: Tree, old: str, new: str) -> Tree:
    """A copy under another name, with a uid of that name wherever the old one stood."""
    text = json.dumps(doc)
    for value in _uids(doc):
        text = text.replace(value, f"{value[:8]}-{new}")
    result: Tree = json.loads(text.replace(f'"{old}', f'"{new}').replace(f'\\"{old}', f'\\"{new}'))
    return result


def _uids(doc: Tree) -> list[str]:
    metadata = doc["metadata"]
    return [metadata["uid"], *(ref["uid"] for ref in metadata.get("ownerReferences", ()))]


def _item(doc: Tree) -> Item:
    metadata = doc["metadata"]
    return Item(metadata.get("namespace", ""), metadata["name"], metadata["uid"], codec.encode(doc))


_SAMPLER = """
import os, sys, time
def pss(pid):
    try:
        with open(f"/proc/{pid}/smaps_rollup") as file:
            return next(int(line.split()[1]) for line in file if line.startswith("Pss:"))
    except OSError:
        return 0
def copies(pid):
    try:
        with open(f"/proc/{pid}/task/{pid}/children") as file:
            return file.read().split()
    except OSError:
        return ()
most, parent, own = 0, sys.argv[1], str(os.getpid())
while True:
    most = max(most, pss(parent) + sum(pss(one) for one in copies(parent) if one != own))
    print(most, flush=True)
    time.sleep(0.5)
"""


@contextmanager
def watched_memory() -> Iterator[list[int]]:
    """The most memory that this process and its copy have together, shared pages counted once, in MiB: the list has it
    in the end."""
    found: list[int] = []
    words = (sys.executable, "-c", _SAMPLER, str(os.getpid()))
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as sampler:
        yield found
        sampler.terminate()
        assert sampler.stdout is not None
        found += [int(line) // 1024 for line in sampler.stdout.read().splitlines()[-1:]]


def measure(nodes: int, pods: int, horizon_s: float) -> dict[str, object]:
    """A drain of one node, with the run without it."""
    snapshot = cluster(nodes, pods)
    audit_started = time.perf_counter()
    audit = plan(snapshot, (), Options(horizon_s=60.0))
    started, cpu, before = time.perf_counter(), time.process_time(), _cpu_of_children()
    with watched_memory() as memory:
        answer = plan(snapshot, [Drain("node-1")], Options(horizon_s=horizon_s))
        seconds = time.perf_counter() - started
    return {
        "load": f"plan {nodes} nodes {pods} pods",
        "horizon_s": horizon_s,
        "seconds": round(seconds, 2),
        "cpu_seconds": round(time.process_time() - cpu, 2),
        "cpu_seconds_of_copy": round(_cpu_of_children() - before, 2),
        "audit_seconds": round(started - audit_started, 2),
        "peak_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
        "peak_mib_with_copy": max(memory, default=0),
        "audit_writes": len(audit.audit),
        "evictions": answer.totals.evictions,
        "problems": len([one for one in answer.problems if not one.already]),
    }


def _cpu_of_children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def main(arguments: list[str]) -> None:
    numbers = [float(word) for word in arguments]
    sizes = [(int(a), int(b), c) for a, b, c in zip(numbers[::3], numbers[1::3], numbers[2::3], strict=True)]
    for size in sizes or SIZES:
        print(json.dumps(measure(*size)), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
