"""Manifests beside kubectl: the object that a plan makes of one, and the one that kubectl apply makes of it.

    KUBEBUILDER_ASSETS=... python -m tests.plans.applied [--random COUNT] [--seed N] [NAME...]

The folder has kube-apiserver, etcd, kube-controller-manager and kubectl. The manifests are those of ``applied.yaml``,
as text, since YAML is a part of the question; ``--random`` adds Deployments that are changed at random. Compared are
the objects with their managed fields, and whether both refuse. It takes about a second for each.
"""

import argparse
import asyncio
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from kcm_cli.component.virtual import run
from kcm_cli.machinery.documents import nested_list, nested_map
from kcm_cli.plan import Apply, Options, PlanError, Snapshot
from kcm_cli.plan.applying import Applying
from kcm_cli.plan.live import take
from kcm_cli.plan.planning import configured
from kcm_cli.plan.questions import with_kinds
from kcm_cli.plan.twin.twin import Twin
from kcm_cli.rest.errors import NotFound
from kcm_cli.rest.transport import Request
from kcm_cli.sandbox.manifests import ManifestError, parsed
from tests.kit.servers import real_cluster
from tests.kit.space import Tree
from tests.plans.random_manifests import changed_at_random

CASES = Path(__file__).with_name("applied.yaml")
PATHS = {
    "web": "/apis/apps/v1/namespaces/{}/deployments/web",
    "service": "/api/v1/namespaces/{}/services/web",
    "config": "/api/v1/namespaces/{}/configmaps/web",
    "thing": "/apis/applied.example.com/v1/namespaces/{}/things/web",
    "shaped": "/apis/applied.example.com/v1/namespaces/{}/shaped/web",
}
_OWN = frozenset(("uid", "resourceVersion", "creationTimestamp", "generation"))
_DRAWN = frozenset(("clusterIP", "clusterIPs"))
_REVISION = "deployment.kubernetes.io/revision"
_CONTROLLERS = "serviceaccount-controller,namespace-controller,root-ca-certificate-publisher-controller"
_SERVER, _FORCE = "--server-side", "--force-conflicts"


@dataclass
class Case:
    """One manifest. setup: kubectl's arguments and the manifest of each step before. look: what is compared, of PATHS.
    flags: of kubectl apply."""

    name: str
    text: str
    setup: list[list[str]] = field(default_factory=list)
    look: list[str] = field(default_factory=lambda: ["web"])
    flags: str = ""
    planned: dict[str, Tree | None] = field(default_factory=dict)
    refused: list[str] = field(default_factory=list)


class Kubectl:
    """kubectl with the cluster's kubeconfig."""

    def __init__(self, assets: Path, config: str) -> None:
        self._words = [f"{assets}/kubectl", f"--kubeconfig={config}"]

    def __call__(self, *words: str, text: str = "") -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*self._words, *words], input=text, capture_output=True, text=True, timeout=60, check=False
        )


def cases() -> tuple[str, list[Case]]:
    """(the definitions of the custom kinds, the manifests of the file)."""
    doc = yaml.safe_load(CASES.read_text())
    return doc["definitions"], [Case(**one) for one in doc["cases"]]


def at_random(count: int, seed: int) -> Iterator[Case]:
    """Deployments that are changed twice."""
    for number, (steps, text, flags) in enumerate(changed_at_random(count, seed)):
        yield Case(f"random-{number}", text, steps, flags=flags)


def _set_up(case: Case, kubectl: Kubectl) -> None:
    kubectl("create", "namespace", case.name)
    for words, text in case.setup:
        done = kubectl(*words.split(), "-n", case.name, *(("-f", "-") if text else ()), text=text)
        if done.returncode:
            print(f"{case.name}: {words}: {done.stderr.strip()[-200:]}")


def _changes(case: Case) -> tuple[Apply, ...]:
    try:
        return tuple(Apply(doc, where) for where, doc in parsed(case.text.encode(), "STDIN"))
    except ManifestError as error:
        case.refused.append(str(error))
        return ()


async def _plan(some: Sequence[tuple[Case, tuple[Apply, ...]]], snapshot: Snapshot) -> None:
    async with Twin(snapshot, configured(("--controllers=serviceaccount-controller",)), 1) as twin:
        await twin.settle()
        for case, changes in some:
            server, force = (flag in case.flags for flag in (_SERVER, _FORCE))
            options = Options(namespace=case.name, server_side=server, force_conflicts=force)
            applying = Applying(twin, options, lambda *_: None)
            try:
                await applying.begin(changes)
            except PlanError as error:
                case.refused.append(str(error))
            case.refused += [one.text for one in applying.refusals]
            for name in case.look:
                try:
                    found = await twin.client.call(Request("GET", PATHS[name].format(case.name)))
                    case.planned[name] = json.loads(found)
                except NotFound:
                    case.planned[name] = None


def _comparable(doc: Tree | None) -> Tree:
    """An object without what differs each time, and what controllers write."""
    if doc is None:
        return {}
    metadata: Tree = {name: value for name, value in doc["metadata"].items() if name not in _OWN}
    entries = (one for one in nested_list(metadata, "managedFields") if isinstance(one, dict))
    metadata["managedFields"] = sorted(
        json.dumps({name: value for name, value in one.items() if name != "time"}, sort_keys=True)
        for one in entries
        if not one.get("subresource") and one.get("manager") != "kube-controller-manager"
    )
    notes = {name: text for name, text in nested_map(metadata, "annotations").items() if name != _REVISION}
    metadata["annotations"] = notes
    spec = {name: value for name, value in nested_map(doc, "spec").items() if name not in _DRAWN}
    return {**{name: value for name, value in doc.items() if name != "status"}, "metadata": metadata, "spec": spec}


def _differing(planned: Any, real: Any, path: str) -> Iterator[str]:
    if isinstance(planned, dict) and isinstance(real, dict):
        for name in sorted({**planned, **real}):
            yield from _differing(planned.get(name), real.get(name), f"{path}.{name}")
    elif isinstance(planned, list) and isinstance(real, list) and len(planned) == len(real):
        for number, pair in enumerate(zip(planned, real, strict=True)):
            yield from _differing(*pair, f"{path}[{number}]")
    elif planned != real:
        yield f"{path}: planned {json.dumps(planned):.300}, kubectl {json.dumps(real):.300}"


def _compare(case: Case, kubectl: Kubectl) -> bool:
    """Apply the manifest, and print what differs. Returns whether nothing does."""
    done = kubectl("apply", "-n", case.name, *case.flags.split(), "-f", "-", text=case.text)
    lines: list[str] = []
    if bool(done.returncode) != bool(case.refused):
        lines.append(f"plan: {case.refused}; kubectl: {done.returncode}, {done.stderr.strip()[-300:]}")
    for name in case.look:
        got = kubectl("get", "--raw", PATHS[name].format(case.name))
        real = json.loads(got.stdout) if not got.returncode else None
        lines += _differing(_comparable(case.planned[name]), _comparable(real), name)
    print("\n    ".join((f"{'DIFFERS' if lines else 'same'}: {case.name}", *lines)), flush=True)
    return not lines


def main(arguments: Sequence[str]) -> int:
    """Compare them; returns how many differ."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--random", type=int, default=0)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args(list(arguments))
    definitions, found = cases()
    chosen = [one for one in found if one.name in given.names or not given.names]
    chosen += at_random(given.random, given.seed)
    assets = Path(os.environ["KUBEBUILDER_ASSETS"])
    with real_cluster(assets, f"--controllers={_CONTROLLERS}") as (_, folder, _):
        config = f"{folder}/kubeconfig"
        kubectl = Kubectl(assets, config)
        kubectl("apply", "-f", "-", text=definitions)
        time.sleep(3)
        for case in chosen:
            _set_up(case, kubectl)
        some = [(case, _changes(case)) for case in chosen]
        everything = [change for _, changes in some for change in changes]
        snapshot = asyncio.run(take(config, changes=everything, include=("configmaps", "custom")))
        snapshot, _ = with_kinds(snapshot, everything)
        run(_plan(some, snapshot))
        same = [_compare(case, kubectl) for case in chosen]
    print(f"{same.count(False)} of {len(same)} differ")
    return same.count(False)


if __name__ == "__main__":
    sys.exit(min(main(sys.argv[1:]), 1))
