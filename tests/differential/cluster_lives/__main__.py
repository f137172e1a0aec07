"""Random lives of what is no workload: nodes, volumes, Services, namespaces, quotas, accounts and more.

    KUBEBUILDER_ASSETS=DIR python -m tests.differential.cluster_lives [--lives 60] [--seed 1] [--only KIND]

DIR has etcd, kube-apiserver and kube-controller-manager. Go's manager and kcm run at the same time, each on a fresh API
server, with service accounts for their controllers. A life is a namespace ``lSEED`` and cluster objects ``lSEED-NAME``:
people create, change and delete objects, and kubelets and drivers are played. After each step the life comes to rest,
and its objects go into a picture, without what is random. The last picture also has the Events, and who wrote what, by
the audit log. Lives that differ are lived again, up to ``--again`` times: what remains differs each time.
"""

import argparse
import asyncio
import os
import random
import subprocess
import sys
from contextlib import ExitStack, nullcontext
from datetime import UTC, datetime
from pathlib import Path

from tests.differential.cluster_lives.kinds import KINDS
from tests.differential.cluster_lives.pictures import events, picture, writes
from tests.differential.cluster_lives.site import PATHS, Site, home
from tests.differential.living import POLL_S, Api, Life, Mirror, api, arguments, chosen, compare, many
from tests.kit.processes import KCM
from tests.kit.recorded import GOLDEN_FLAGS
from tests.kit.servers import real_cluster

FLAGS = (
    *GOLDEN_FLAGS, "--allocate-node-cidrs",
    "--cluster-cidr=10.128.0.0/9", "--service-cluster-ip-range=10.0.0.0/16",
)  # fmt: skip
CONTROLLERS = "--controllers=*,bootstrap-signer-controller,token-cleaner-controller"
OF_A_FORK = "service-ca-certificate-publisher-controller"
"""Writes to each namespace, in OpenShift's manager."""
ALPHA = "--feature-gates=AllAlpha=true,AllBeta=true"
ALPHA_SERVER = (f"{ALPHA},CBORServingAndStorage=false", "--runtime-config=api/all=true")
"""Without CBOR, in which Go's manager sends what it applies: the audit log lacks such requests."""
DUAL = ("--service-cluster-ip-range=10.0.0.0/16,fd00::/108",)
METRICS = (("metrics.k8s.io", "pods", "PodMetrics"), ("external.metrics.k8s.io", "queues", "ExternalMetricValue"))
"""APIs that definitions of custom resources play."""
TRIES = 5
"""How often another step is tried when one is in vain."""
HEARTBEAT_S, SILENCE_S, STARTS_S = 2.0, 8, 5.0
STANDING = {"n0": "a", "n1": "a", "n2": "b"}
"""Nodes that all lives may use, and their zones."""


async def beat(server: Api, node: str) -> None:
    path = f"/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/{node}?fieldManager=kubelet&force=true"
    spec = {
        "holderIdentity": node,
        "leaseDurationSeconds": 40,
        "renewTime": f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%S.%fZ}",
    }
    body = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": node}, "spec": spec}
    await server.ask("PATCH", path, body, "application/apply-patch+yaml")


async def heartbeats(mirror: Mirror, lost: set[str]) -> None:
    while True:
        nodes = {
            node["metadata"]["name"]
            for (_, plural), found in list(mirror.objects.items())
            if plural == "nodes"
            for node in found.values()
        }
        await asyncio.gather(*(beat(mirror.api, node) for node in nodes - lost))
        await asyncio.sleep(HEARTBEAT_S)


async def prepare(server: Api) -> None:
    for name, zone in STANDING.items():
        labels = {"topology.kubernetes.io/zone": zone, "zone": zone, "kubernetes.io/hostname": name}
        status = {"conditions": [{"type": "Ready", "status": "True"}], "allocatable": {"cpu": "4", "pods": "110"}}
        await server.ask("POST", "/api/v1/nodes", {"metadata": {"name": name, "labels": labels}, "status": status})

    for group, plural, kind in METRICS:
        schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
        spec = {
            "group": group, "scope": "Namespaced", "names": {"plural": plural, "kind": kind},
            "versions": [{"name": "v1beta1", "served": True, "storage": True, "schema": schema}],
        }  # fmt: skip
        annotations = {"api-approved.kubernetes.io": "unapproved, for a test"}
        body = {"metadata": {"name": f"{plural}.{group}", "annotations": annotations}, "spec": spec}
        await server.ask("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", body)


async def acting(mirror: Mirror) -> None:
    """Wait until the manager acts, and a while more."""
    await mirror.api.ask("POST", "/api/v1/namespaces", {"metadata": {"name": "l0"}})
    while not mirror.items("l0", "serviceaccounts"):
        await asyncio.sleep(POLL_S)
    await asyncio.sleep(STARTS_S * mirror.patience)


async def live(site: Site, seed: int, name: str) -> Life:
    rng, kind = random.Random(seed), KINDS[name]
    await site.api.ask("POST", "/api/v1/namespaces", {"metadata": {"name": site.namespace}})
    await site.rest(1.0)
    for step in kind.first:
        await step.act(site, rng)
    await site.rest(1.0)
    pictures = [(f"{name}: {site.told()}", picture(site))]
    for _ in range(rng.randint(6, 12)):
        for _ in range(TRIES):
            step = rng.choice(kind.steps)
            if await step.act(site, rng):
                await site.rest(step.s)
                break
        if kind.nudge:
            await site.patch(kind.nudge, "w", {"metadata": {"annotations": {"nudge": str(len(pictures))}}})
            await site.rest(1.0)
        pictures.append((site.told(), picture(site)))
    for step in kind.last:
        await step.act(site, rng)
    await site.rest(kind.ends_s)
    pictures.append(("the end", picture(site) + events(site)))
    return pictures


async def lives(url: str, audit: Path, seeds: list[int], options: argparse.Namespace) -> dict[int, Life]:
    lost: set[str] = set()
    kinds = [name for name, kind in KINDS.items() if options.alpha or not kind.alpha]
    locks = {name: asyncio.Lock() for name, kind in KINDS.items() if kind.alone}
    async with api(url) as server:
        await prepare(server)
        mirror = Mirror(server, PATHS, home, frozenset({"events"}), options.patience)

        async def one(seed: int) -> Life:
            name = chosen(random.Random(f"kind {seed}"), kinds, options.only)
            async with locks.get(name, nullcontext()):
                return await live(Site(mirror, f"l{seed}", lost), seed, name)

        async with mirror.following():
            await acting(mirror)
            beating = asyncio.create_task(heartbeats(mirror, lost))
            found = await many(seeds, options.at_once, one)
            beating.cancel()
    written = writes(audit)
    for seed, pictures in found.items():
        what, last = pictures[-1]
        pictures[-1] = (what, last + written.get(f"l{seed}", []))
    return found


async def both(seeds: list[int], options: argparse.Namespace) -> list[dict[int, Life]]:
    """The lives under kcm and under Go's manager, at the same time."""
    assets = Path(os.environ["KUBEBUILDER_ASSETS"])
    go = f"{assets}/kube-controller-manager"
    forked = OF_A_FORK in subprocess.run((go, "--help"), capture_output=True, check=True, text=True).stdout
    server = (*DUAL, *(ALPHA_SERVER if options.alpha else ()))
    flags = [*FLAGS, f"--node-monitor-grace-period={SILENCE_S * options.patience}s"]
    flags += [ALPHA] * options.alpha + options.flags
    programs = {"kcm": (KCM, CONTROLLERS), "go": ((go,), CONTROLLERS + f",-{OF_A_FORK}" * forked)}
    with ExitStack() as stack:
        clusters = [
            stack.enter_context(real_cluster(assets, controllers, *flags, program=program, server=server))
            for program, controllers in programs.values()
        ]
        found = await asyncio.gather(*(lives(url, audit, seeds, options) for url, _, audit in clusters))
        if options.logs:
            for name, (_, folder, audit) in zip(programs, clusters, strict=True):
                Path(options.logs, f"{name}.log").write_bytes((folder / "manager.log").read_bytes())
                Path(options.logs, f"{name}.audit").write_bytes(audit.read_bytes())
        return found


def main() -> int:
    parser = arguments(__doc__, KINDS)
    parser.add_argument("--again", type=int, default=1)
    parser.add_argument("--logs", default="", help="keep the managers' logs and the audit logs in this folder")
    parser.add_argument(
        "--flags", nargs="*", default=[], help="more flags of both managers, without --", metavar="FLAG"
    )
    parser.add_argument(
        "--alpha", action="store_true", help="with all APIs and gates, and kinds of lives that need them"
    )
    options = parser.parse_args()
    options.flags = [f"--{flag}" for flag in options.flags]
    seeds = list(range(options.seed, options.seed + options.lives))
    for _ in range(options.again + 1):
        ours, theirs = asyncio.run(both(seeds, options))
        seeds = compare(ours, theirs)
        if not seeds:
            return 0
    return 1


if __name__ == "__main__":
    sys.exit(main())
