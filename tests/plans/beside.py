"""Plans beside what then happens on a real control plane with hollow nodes: end state, verdict and exit code.

    KUBEBUILDER_ASSETS=... python -m tests.plans.beside [NAME...]

The folder has kube-apiserver, etcd, kube-controller-manager, kube-scheduler, kubectl and kubemark. Each change is
planned first, and then made with kubectl. It takes about a minute for each; the table is ``CHANGES``.
"""

import asyncio
import json
import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kcm_cli.cli.plan_compare import verdict as compare_verdict
from kcm_cli.cli.plan_flags import CONDITIONS, FLAGS, read
from kcm_cli.cli.plan_text import verdict
from kcm_cli.component.virtual import run
from kcm_cli.plan import Change, Options, Snapshot, plan
from kcm_cli.plan.applying import Applying
from kcm_cli.plan.changes import custom_kinds
from kcm_cli.plan.comparison import Comparison, compare, needed
from kcm_cli.plan.live import take
from kcm_cli.plan.planning import configured
from kcm_cli.plan.questions import with_kinds
from kcm_cli.plan.steps import HAPPENED
from kcm_cli.plan.twin.twin import Twin
from kcm_cli.rest.transport import Request
from kcm_cli.runtime.tasks import Tasks
from tests.kit.processes import Processes, free_port
from tests.kit.servers import real_cluster
from tests.kit.space import Space, Tree

NODES = ("hollow-1", "hollow-2", "hollow-3")
SETTLE_S, WATCHED_S = 14.0, 30.0
State = dict[str, Any]


@dataclass(frozen=True)
class Beside:
    """One change. setup: manifests that are applied before. plan: arguments of ``kcm plan``. do: kubectl's arguments,
    of commands that run at the same time. manifests: of the change, applied with ``apply``. problems: kinds that the
    plan has to name, or none."""

    name: str
    setup: Callable[[Space], Iterable[Tree]]
    plan: tuple[str, ...] = ()
    do: tuple[str, ...] = ()
    manifests: Callable[[Space], Iterable[Tree]] | None = None
    apply: tuple[str, ...] = ()
    problems: frozenset[str] = frozenset()


def _web(s: Space, replicas: int = 4, **spec: Any) -> Tree:
    return s.deployment("web", replicas, _template(s, "web"), **spec)


def _template(s: Space, app: str, image: str = "app:1", cpu: str = "100m", **spec: Any) -> Tree:
    template = s.template(app, image, cpu=cpu, **spec)
    del template["spec"]["nodeSelector"], template["spec"]["tolerations"]
    return template


def _limited(s: Space, *, limits: bool = True, image: str = "app:1") -> Tree:
    doc = s.deployment("web", 3, _template(s, "web", image))
    if limits:
        doc["spec"]["template"]["spec"]["containers"][0]["resources"]["limits"] = {"cpu": "200m"}
        doc["spec"]["template"]["spec"]["terminationGracePeriodSeconds"] = 5
        doc["metadata"]["labels"] = {"team": "a"}
    return doc


def _quota(s: Space, **hard: str) -> Tree:
    amounts = {name.replace("_", "."): value for name, value in hard.items()}
    return s.doc("v1", "ResourceQuota", "quota", {"hard": amounts})


def _spread(s: Space, name: str, replicas: int) -> Tree:
    rule = {"maxSkew": 1, "topologyKey": "kubernetes.io/hostname", "whenUnsatisfiable": "ScheduleAnyway"}
    rule |= {"labelSelector": {"matchLabels": {"app": name}}}  # type: ignore[dict-item]
    return s.deployment(name, replicas, _template(s, name, topologySpreadConstraints=[rule]))


CHANGES = (
    Beside(
        "fields-removed",
        lambda s: [_limited(s)],
        manifests=lambda s: [_limited(s, limits=False)],
        apply=("apply",),
    ),
    Beside(
        "fields-removed-server-side",
        lambda s: [_limited(s)],
        plan=("--server-side",),
        manifests=lambda s: [_limited(s, limits=False)],
        apply=("apply", "--server-side"),
    ),
    Beside(
        "invalid-replicas",
        lambda s: [_web(s)],
        manifests=lambda s: [_web(s, -1)],
        apply=("apply",),
        problems=frozenset(("refused",)),
    ),
    Beside(
        "invalid-selector",
        lambda s: [_web(s)],
        manifests=lambda s: [{**_web(s), "spec": {**_web(s)["spec"], "selector": {"matchLabels": {"app": "x"}}}}],
        apply=("apply", "--server-side", "--force-conflicts"),
        plan=("--force-conflicts",),
        problems=frozenset(("refused",)),
    ),
    Beside(
        "two-drains",
        lambda s: [_spread(s, "web", 6), s.budget("web", minAvailable=3)],
        plan=("--drain", NODES[0], "--drain", NODES[1]),
        do=(f"drain {NODES[0]} {NODES[1]} --ignore-daemonsets",),
    ),
    Beside(
        "two-drains-blocked",
        lambda s: [_spread(s, "web", 3), s.budget("web", minAvailable=3)],
        plan=("--drain", NODES[0], "--drain", NODES[1]),
        do=(f"drain {NODES[0]} {NODES[1]} --ignore-daemonsets",),
        problems=frozenset(("pdb", "drain")),
    ),
    Beside(
        "drain-without-room",
        lambda s: [s.deployment("web", 6, _template(s, "web", cpu="400m"))],
        plan=("--drain", NODES[2]),
        do=(f"drain {NODES[2]} --ignore-daemonsets",),
        problems=frozenset(("pending", "stuck")),
    ),
    Beside(
        "drain-needs-force",
        lambda s: [s.doc("v1", "Pod", "bare", _template(s, "x")["spec"] | {"nodeName": NODES[0]}), _web(s, 2)],
        plan=("--drain", NODES[1]),
        do=(f"drain {NODES[1]} --ignore-daemonsets",),
    ),
    Beside(
        "delete-workload-with-service",
        lambda s: [_web(s), s.service("web")],
        plan=("--delete", "deploy/web"),
        do=("delete deploy web",),
        problems=frozenset(("no-endpoints",)),
    ),
    Beside(
        "service-of-another",
        lambda s: [_web(s, 2), s.deployment("api", 2, _template(s, "api")), s.service("web")],
        manifests=lambda s: [s.service("web", selector={"app": "api"})],
        apply=("apply",),
        problems=frozenset(("no-endpoints",)),
    ),
    Beside(
        "delete-stateful-set",
        lambda s: [s.stateful_set("db", 3, _template(s, "db"))],
        plan=("--delete", "sts/db"),
        do=("delete sts db",),
    ),
    Beside(
        "quota-of-pods",
        lambda s: [_web(s, 2), _quota(s, pods="3")],
        plan=("--scale", "deploy/web=5"),
        do=("scale deploy web --replicas=5",),
        problems=frozenset(("quota", "stuck")),
    ),
    Beside(
        "quota-of-limits",
        lambda s: [_web(s, 2), _quota(s, limits_cpu="2")],
        plan=("--scale", "deploy/web=4"),
        do=("scale deploy web --replicas=4",),
        problems=frozenset(("quota", "stuck")),
    ),
    Beside(
        "quota-refuses-a-service",
        lambda s: [s.service("web"), _quota(s, services="1")],
        manifests=lambda s: [s.service("api")],
        apply=("apply",),
        problems=frozenset(("quota",)),
    ),
    Beside(
        "taint",
        lambda s: [_spread(s, "web", 6)],
        manifests=lambda s: [_tainted()],
        apply=("apply", "--server-side", "--force-conflicts"),
        plan=("--force-conflicts",),
    ),
    Beside(
        "new-image",
        lambda s: [_web(s), s.service("web")],
        plan=("--set-image", "deploy/web=app:2"),
        do=("set image deploy/web c=app:2",),
    ),
    Beside(
        "new-image-of-a-pending-workload",
        lambda s: [s.deployment("web", 5, _template(s, "web", cpu="700m"), progressDeadlineSeconds=15)],
        plan=("--set-image", "deploy/web=app:2"),
        do=("set image deploy/web c=app:2",),
        problems=frozenset(("pending", "stuck")),
    ),
    Beside(
        "partition",
        lambda s: [
            s.stateful_set(
                "db",
                3,
                _template(s, "db"),
                updateStrategy={"type": "RollingUpdate", "rollingUpdate": {"partition": 2}},
            )
        ],
        plan=("--set-image", "sts/db=app:2"),
        do=("set image sts/db c=app:2",),
    ),
    Beside(
        "preemption",
        lambda s: [s.deployment("low", 3, _template(s, "low", cpu="800m"))],
        manifests=lambda s: [
            s.deployment("vip", 1, _template(s, "vip", cpu="800m", priorityClassName="system-cluster-critical")),
        ],
        apply=("apply",),
        problems=frozenset(("pending", "stuck")),
    ),
    Beside(
        "delete-namespace-with-everything",
        lambda s: [_web(s, 2), s.service("web"), s.stateful_set("db", 2, _template(s, "db"))],
        plan=("--delete", "namespace/{space}"),
        do=("delete namespace {space} --wait=false",),
    ),
    Beside(
        "container-and-variable-removed",
        lambda s: [_with_more(s)],
        manifests=lambda s: [_web(s, 3)],
        apply=("apply",),
    ),
    Beside(
        "port-removed",
        lambda s: [_web(s, 2), s.service("web", ports=[{"name": n, "port": p} for n, p in (("a", 80), ("b", 81))])],
        manifests=lambda s: [s.service("web", ports=[{"name": "b", "port": 81}])],
        apply=("apply",),
    ),
    Beside(
        "custom-resource",
        lambda s: [_definition(), _thing(s, size=1, old=True)],
        manifests=lambda s: [_thing(s, size=2)],
        apply=("apply",),
    ),
    Beside(
        "scale-down",
        lambda s: [_web(s, 5), s.service("web"), s.budget("web", minAvailable=4)],
        plan=("--scale", "deploy/web=2"),
        do=("scale deploy web --replicas=2",),
    ),
    Beside(
        "stateful-set-beyond-room",
        lambda s: [s.stateful_set("db", 2, _template(s, "db", cpu="700m"))],
        plan=("--scale", "sts/db=5"),
        do=("scale sts db --replicas=5",),
        problems=frozenset(("pending", "stuck")),
    ),
    Beside(
        "pod-deleted",
        lambda s: [s.stateful_set("db", 2, _template(s, "db"))],
        plan=("--delete", "pod/db-0"),
        do=("delete pod db-0",),
    ),
    Beside(
        "recreate",
        lambda s: [_web(s, 3, strategy={"type": "Recreate"})],
        plan=("--set-image", "deploy/web=app:2"),
        do=("set image deploy/web c=app:2",),
    ),
    Beside(
        "strategy-changed",
        lambda s: [_web(s, 3)],
        manifests=lambda s: [_web(s, 3, strategy={"type": "Recreate"})],
        apply=("apply",),
    ),
    Beside(
        "missing-service-account",
        lambda s: [_web(s, 2)],
        manifests=lambda s: [s.deployment("web", 2, _template(s, "web", "app:2", serviceAccountName="nobody"))],
        apply=("apply",),
        problems=frozenset(("stuck",)),
    ),
    Beside(
        "delete-default-namespace",
        lambda s: [_web(s, 1)],
        plan=("--delete", "namespace/default"),
        do=("delete namespace default",),
        problems=frozenset(("refused",)),
    ),
)


def _with_more(s: Space) -> Tree:
    doc = _web(s, 3)
    containers = doc["spec"]["template"]["spec"]["containers"]
    containers[0]["env"] = [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}]
    containers.append({"name": "more", "image": "more:1"})
    return doc


def _definition() -> Tree:
    names = {"kind": "Thing", "plural": "things", "singular": "thing", "listKind": "ThingList"}
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    version = {"name": "v1", "served": True, "storage": True, "schema": schema}
    spec = {"group": "beside.example.com", "names": names, "scope": "Namespaced", "versions": [version]}
    head = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition"}
    return {**head, "metadata": {"name": "things.beside.example.com"}, "spec": spec}


def _thing(s: Space, **spec: Any) -> Tree:
    return s.doc("beside.example.com/v1", "Thing", "one", spec)


def _tainted() -> Tree:
    taint = {"key": "example.com/away", "effect": "NoExecute"}
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": NODES[0]}, "spec": {"taints": [taint]}}


# -- the cluster


class Kubectl:
    def __init__(self, assets: Path, config: Path) -> None:
        self._words = [f"{assets}/kubectl", f"--kubeconfig={config}"]
        self.config = config

    def __call__(self, *words: str, text: str = "", timeout_s: float = 60) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*self._words, *words], input=text, capture_output=True, text=True, timeout=timeout_s, check=False
        )

    def start(self, *words: str) -> subprocess.Popen[str]:
        return subprocess.Popen([*self._words, *words], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)

    def items(self, kind: str, space: str) -> list[Any]:
        found: list[Any] = json.loads(self("get", kind, "-n", space, "-o", "json").stdout or "{}").get("items") or []
        return found


def summary(kinds: dict[str, list[Any]]) -> State:
    """What is compared, of the objects of one namespace and the nodes."""
    found: State = {}
    pods: Counter[str] = Counter()
    for pod in kinds["pods"]:
        meta, status = pod["metadata"], pod.get("status") or {}
        ready = any(one["type"] == "Ready" and one["status"] == "True" for one in status.get("conditions") or ())
        images = ",".join(one["image"] for one in pod["spec"]["containers"])
        word = "leaving" if meta.get("deletionTimestamp") else "Ready" if ready else status.get("phase") or "Pending"
        pods[f"{(meta.get('labels') or {}).get('app', meta['name'])} {images} {word}"] += 1
    found["pods"] = dict(sorted(pods.items()))
    for kind in ("deployments", "statefulsets"):
        for one in kinds[kind]:
            status = one.get("status") or {}
            numbers = [status.get(name, 0) for name in ("replicas", "readyReplicas", "updatedReplicas")]
            found[f"{kind}/{one['metadata']['name']}"] = [one["spec"].get("replicas"), *numbers]
    for one in kinds["endpointslices"]:
        name = (one["metadata"].get("labels") or {}).get("kubernetes.io/service-name")
        ready = [e for e in one.get("endpoints") or () if (e.get("conditions") or {}).get("ready")]
        found[f"endpoints/{name}"] = len(ready)
    for one in kinds["services"]:
        found[f"ports/{one['metadata']['name']}"] = [port["port"] for port in one["spec"].get("ports") or ()]
    for one in kinds.get("things", ()):
        found[f"things/{one['metadata']['name']}"] = one["spec"]
    found["unschedulable"] = sorted(n["metadata"]["name"] for n in kinds["nodes"] if n["spec"].get("unschedulable"))
    return found


_PATHS = {
    "pods": "/api/v1/namespaces/{}/pods",
    "deployments": "/apis/apps/v1/namespaces/{}/deployments",
    "statefulsets": "/apis/apps/v1/namespaces/{}/statefulsets",
    "endpointslices": "/apis/discovery.k8s.io/v1/namespaces/{}/endpointslices",
    "services": "/api/v1/namespaces/{}/services",
    "nodes": "/api/v1/nodes",
}
_THINGS = {"things": "/apis/beside.example.com/v1/namespaces/{}/things"}


async def _predicted(snapshot: Snapshot, changes: tuple[Change, ...], options: Options, space: str) -> State:
    async with Twin(snapshot, configured(()), 1) as twin:
        await twin.settle()
        applying = Applying(twin, options, lambda *_: None)
        tasks = Tasks(lambda name, error: None)
        nodes = await applying.begin(changes)
        if nodes and applying.drain is not None:
            tasks.start("drain", applying.drain.run(nodes))
        await twin.clock.sleep(WATCHED_S)
        await tasks.stop()
        kinds = {}
        is_custom = any(kind.endswith(".beside.example.com") for kind in custom_kinds(changes))
        for kind, path in {**_PATHS, **(_THINGS if is_custom else {})}.items():
            kinds[kind] = json.loads(await twin.client.call(Request("GET", path.format(space))))["items"]
        return summary(kinds)


def _arguments(one: Beside, space: Space, folder: Path) -> list[str]:
    words = [word.replace("{space}", space.name) for word in one.plan]
    if one.manifests is not None:
        path = folder / f"{one.name}.json"
        path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": list(one.manifests(space))}))
        words += ["-f", str(path)]
    return words


def beside(one: Beside, kubectl: Kubectl, folder: Path) -> bool:
    """Plan a change, make it, and print what differs. Returns whether nothing does."""
    space = Space(f"beside-{one.name}")
    kubectl("create", "namespace", space.name)
    setup = {"apiVersion": "v1", "kind": "List", "items": list(one.setup(space))}
    made = kubectl("apply", "-f", "-", text=json.dumps(setup))
    if "no matches for kind" in made.stderr:  # its definition has just been made
        time.sleep(3)
        made = kubectl("apply", "-f", "-", text=json.dumps(setup))
    if made.returncode:
        print(f"{one.name}: setup: {made.stderr}")
        return False
    time.sleep(SETTLE_S)
    words = _arguments(one, space, folder)
    parsed = FLAGS.parse([*words, "-n", space.name, "--for", f"{WATCHED_S:g}s", "--fail-on", ",".join(CONDITIONS)])
    command, problems = read(parsed, ())
    assert command is not None, problems
    snapshot = asyncio.run(take(str(kubectl.config), changes=command.changes))
    snapshot, _ = with_kinds(snapshot, command.changes)
    answer = plan(snapshot, command.changes, command.options)
    predicted = run(_predicted(snapshot, command.changes, command.options, space.name))
    started = [kubectl.start(*do.format(space=space.name).split(), "-n", space.name) for do in one.do]
    applied = ""
    if one.manifests is not None:
        outcome = kubectl(*one.apply, "-n", space.name, "-f", words[words.index("-f") + 1])
        applied = outcome.stderr.strip()
    time.sleep(WATCHED_S)
    is_custom = any(kind.endswith(".beside.example.com") for kind in custom_kinds(command.changes))
    happened = summary({kind: kubectl.items(kind, space.name) for kind in (*_PATHS, *(_THINGS if is_custom else ()))})
    for process in started:
        process.kill()
    later = asyncio.run(take(str(kubectl.config), changes=command.changes, include=needed(answer)))
    compared = compare(answer, later)
    kinds = {problem.kind for problem in answer.problems if not problem.already}
    differs = {key: (predicted.get(key), happened.get(key)) for key in {**predicted, **happened}}
    differs = {key: both for key, both in differs.items() if both[0] != both[1]}
    expected = one.problems <= kinds and bool(one.problems) == bool(kinds)
    code = 3 if answer.has(command.fail_on) else 0
    word = "same" if not differs and expected else "DIFFERS"
    print(f"{word}: {one.name}: exit {code}: {verdict(answer)}", flush=True)
    for key, (planned, real) in sorted(differs.items()):
        print(f"    {key}: planned {planned}, happened {real}")
    for problem in answer.problems:
        print(f"    {problem.kind} {problem.about}: {problem.text}{' (already)' if problem.already else ''}")
    if applied:
        print(f"    kubectl: {applied}")
    _compared(compared)
    _clean(kubectl, space)
    return not differs and expected


def _compared(found: Comparison) -> None:
    """Print what ``kcm plan --compare`` says."""
    print(f"    compare: {compare_verdict(found)}")
    for step in found.steps:
        if step.state != HAPPENED:
            print(f"      {step.state}: {step.action} {step.about}: {step.detail}")
            for field in step.fields:
                if field.state != HAPPENED:
                    print(f"        {field.path}: was {field.before}, planned {field.planned}, is {field.found}")
    for other in found.unexpected:
        print(f"      not planned: {other.what} {other.about} by {other.by} at {other.at}")
    for ready in found.availability:
        if ready.state != HAPPENED:
            print(f"      ready: {ready}")


def _clean(kubectl: Kubectl, space: Space) -> None:
    kubectl("delete", "namespace", space.name, "--wait=false")
    kubectl("delete", "pods", "--all", "-n", space.name, "--grace-period=0", "--force")
    for node in NODES:
        kubectl("uncordon", node)
        kubectl("taint", "node", node, "example.com/away-")
    for _ in range(30):
        if kubectl("get", "namespace", space.name).returncode:
            return
        time.sleep(1)


def main(names: Sequence[str]) -> int:
    assets = Path(os.environ["KUBEBUILDER_ASSETS"])
    bad = 0
    with real_cluster(assets) as (_, folder, _), Processes() as processes:
        config = folder / "kubeconfig"
        kubectl = Kubectl(assets, config)
        words = [f"{assets}/kube-scheduler", f"--kubeconfig={config}", "--leader-elect=false"]
        words += [f"--authentication-kubeconfig={config}", f"--authorization-kubeconfig={config}"]
        processes.start(*words, f"--secure-port={free_port()}", f"--cert-dir={folder}/s", log=folder / "scheduler.log")
        for node in NODES:
            words = [
                f"{assets}/kubemark",
                "--morph=kubelet",
                "--use-host-image-service=false",
                f"--name={node}",
                f"--kubeconfig={config}",
            ]
            ports = [f"--kubelet-port={free_port()}", f"--kubelet-read-only-port={free_port()}"]
            processes.start(*words, *ports, log=folder / f"{node}.log")
        for _ in range(120):
            nodes = kubectl.items("nodes", "default")
            conditions = [c for n in nodes for c in n["status"].get("conditions") or () if c["type"] == "Ready"]
            if sum(c["status"] == "True" for c in conditions) == len(NODES):
                break
            time.sleep(1)
        time.sleep(10)
        for one in CHANGES:
            if not names or one.name in names:
                bad += not beside(one, kubectl, folder)
    print(f"{bad} differ")
    return int(bad > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
