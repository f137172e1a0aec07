"""Nothing in a manifest or a snapshot makes a plan open a connection, look up a name or start a process."""

import base64
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from msgspec.structs import replace

from kcm_cli.machinery import codec
from kcm_cli.plan import Answer, Apply, Options, Scale, Target, plan, simulation
from kcm_cli.plan.collect import item_of
from kcm_cli.plan.kinds import DEFINITIONS, KINDS, ListedKind
from kcm_cli.plan.snapshot import Collection, Snapshot
from tests.kit.simulation import NAMESPACE
from tests.kit.workload import deployment, template
from tests.unit.plan.clusters import service, settled

Tree = dict[str, Any]
_FORBIDDEN = frozenset(
    ("socket.connect", "socket.getaddrinfo", "socket.gethostbyname", "socket.gethostbyaddr", "socket.sendto")
    + ("socket.sendmsg", "socket.bind", "subprocess.Popen", "os.system", "os.exec", "os.posix_spawn", "urllib.Request")
)
_CA = base64.b64encode(b"-----BEGIN CERTIFICATE-----\nAA==\n-----END CERTIFICATE-----\n").decode()
_ADDRESSES: tuple[Tree, ...] = (
    {"url": "https://127.0.0.1:1/hook"},
    {"url": "https://hooks.example.com/hook"},
    {"url": "https://web.sim.svc/hook"},
    {"service": {"namespace": NAMESPACE, "name": "web", "port": 80}},
    {"service": {"namespace": NAMESPACE, "name": "away", "port": 443}},
    {"service": {"namespace": NAMESPACE, "name": "routed", "port": 443}},
)


class _Watch:
    """Records forbidden calls by Python's audit events: no layer of the interpreter can leave them out."""

    def __init__(self) -> None:
        self.seen: list[str] | None = None
        sys.addaudithook(self._look)

    def _look(self, event: str, arguments: tuple[object, ...]) -> None:
        if self.seen is not None and event in _FORBIDDEN:
            self.seen.append(f"{event} {arguments!r}")
            raise PermissionError(event)


_WATCH = _Watch()


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """What was called. Both runs of a plan are in this process."""
    monkeypatch.setattr(simulation, "may_fork", lambda: False)
    _WATCH.seen = found = []
    try:
        yield found
    finally:
        _WATCH.seen = None


def webhooks(kind: str, policy: str) -> Tree:
    """One for each address; every object of every kind matches all."""
    rules = [{"apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*/*"], "operations": ["*"], "scope": "*"}]
    same: Tree = {"rules": rules, "failurePolicy": policy, "sideEffects": "None"}
    same |= {"admissionReviewVersions": ["v1"], "timeoutSeconds": 30}
    hooks = [
        {"name": f"hook-{number}.example.com", "clientConfig": {**client, "caBundle": _CA}, **same}
        for number, client in enumerate(_ADDRESSES)
    ]
    api = "admissionregistration.k8s.io/v1"
    return {"apiVersion": api, "kind": kind, "metadata": {"name": "hook"}, "webhooks": hooks}


def definition(number: int, client: Tree) -> Tree:
    names = {"kind": f"Thing{number}", "plural": f"thing{number}s", "singular": f"thing{number}"}
    names["listKind"] = f"Thing{number}List"
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    versions = [{"name": f"v{n}", "served": True, "storage": n == 1, "schema": schema} for n in (1, 2)]
    conversion = {"strategy": "Webhook", "webhook": {"clientConfig": client, "conversionReviewVersions": ["v1"]}}
    spec = {"group": "example.com", "names": names, "scope": "Namespaced", "versions": versions}
    api, metadata = "apiextensions.k8s.io/v1", {"name": f"{names['plural']}.example.com"}
    whole = {**spec, "conversion": conversion}
    return {"apiVersion": api, "kind": "CustomResourceDefinition", "metadata": metadata, "spec": whole}


def things(one: int, two: int) -> Iterator[Tree]:
    """An object in each of these versions, of each definition."""
    for number in range(len(_ADDRESSES)):
        for name, version in (("one", one), ("two", two)):
            doc: Tree = {"apiVersion": f"example.com/v{version}", "kind": f"Thing{number}", "spec": {"a": version}}
            yield {**doc, "metadata": {"name": name, "namespace": NAMESPACE}}


def api_service() -> Tree:
    spec: Tree = {"group": "far.example.com", "version": "v1", "groupPriorityMinimum": 10, "versionPriority": 10}
    spec |= {"service": {"namespace": NAMESPACE, "name": "web", "port": 80}, "insecureSkipTLSVerify": True}
    metadata = {"name": "v1.far.example.com"}
    return {"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService", "metadata": metadata, "spec": spec}


def services() -> Iterator[Tree]:
    """Services that lead away from the cluster."""
    away = service("away")
    away["spec"] = {"type": "ExternalName", "externalName": "hooks.example.com", "ports": [{"port": 443}]}
    routed = service("routed")
    routed["metadata"]["annotations"] = {"sandbox.kcm.dev/route": "127.0.0.1:1"}
    routed["spec"]["ports"] = [{"port": 443}]
    yield from (away, routed)


def pods() -> Iterator[Tree]:
    """Pods whose kubelet would dial, look up names or run programs."""
    probe: Tree = {"httpGet": {"host": "203.0.113.7", "port": 80, "path": "/"}, "periodSeconds": 1}
    probes: tuple[Tree, ...] = (
        probe,
        {"tcpSocket": {"host": "example.com", "port": 80}},
        {"grpc": {"port": 80}},
        {"exec": {"command": ["curl", "example.com"]}},
    )
    for number, one in enumerate(probes):
        doc = template("odd", "registry.example.com:5000/app:1", hostNetwork=False)
        container = doc["spec"]["containers"][0]
        container |= {name: one for name in ("livenessProbe", "readinessProbe", "startupProbe")}
        hook = {name: value for name, value in one.items() if name != "periodSeconds" and name != "grpc"}
        container["lifecycle"] = {name: hook for name in ("postStart", "preStop")} if hook else {}
        container["command"] = ["/bin/sh", "-c", "curl https://example.com"]
        notes = {"sandbox.kcm.dev/forward": "80=127.0.0.1:1", "sandbox.kcm.dev/run-time": "5s"}
        metadata = {"name": f"odd-{number}", "namespace": NAMESPACE, "annotations": notes, "labels": {"app": "odd"}}
        yield {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": doc["spec"]}


def volumes() -> Iterator[Tree]:
    sources: Tree = {
        "nfs": {"server": "nfs.example.com", "path": "/"},
        "flexVolume": {"driver": "example.com/driver", "fsType": "ext4"},
        "iscsi": {"targetPortal": "203.0.113.7:3260", "iqn": "iqn.2001-04.com.example:storage", "lun": 0},
    }
    for name, source in sources.items():
        spec = {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], name: source}
        spec["persistentVolumeReclaimPolicy"] = "Recycle" if name == "nfs" else "Delete"
        yield {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": name.lower()}, "spec": spec}
        claim = {"accessModes": ["ReadWriteOnce"], "storageClassName": "", "volumeName": name.lower()}
        claim["resources"] = {"requests": {"storage": "1Gi"}}
        metadata = {"name": name.lower(), "namespace": NAMESPACE}
        yield {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata, "spec": claim}


def autoscaler() -> Tree:
    metric = {"metric": {"name": "queue"}, "target": {"type": "Value", "value": "3"}}
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
    spec = {"scaleTargetRef": target, "maxReplicas": 9, "metrics": [{"type": "External", "external": metric}]}
    metadata = {"name": "web", "namespace": NAMESPACE}
    return {"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": metadata, "spec": spec}


def with_objects(*docs: Tree) -> Snapshot:
    """The settled cluster with these objects, as if they had been read from it."""
    whole = settled()
    collections = dict(whole.collections)
    known = {kind.kind: kind for kind in (*KINDS, DEFINITIONS)}
    for doc in docs:
        group, _, version = doc["apiVersion"].rpartition("/")
        kind = known.get(doc["kind"]) or ListedKind(
            replace(DEFINITIONS.gvr, group=group, version=version, plural=f"{doc['kind'].lower()}s"), doc["kind"]
        )
        doc = {**doc, "metadata": {"uid": doc["metadata"]["name"], "resourceVersion": "7", **doc["metadata"]}}
        item = item_of(codec.encode(doc), kind.gvr, kind.kind)
        assert item is not None
        before = collections.get(kind.gvr)
        items = (*(before.items if before is not None else ()), item)
        collections[kind.gvr] = Collection(kind.gvr, kind.kind, kind.namespaced, items)
    return replace(whole, collections=collections)


def planned(snapshot: Snapshot, *docs: Tree) -> Answer:
    changes = [*(Apply(doc) for doc in docs), Scale(Target("deploy", "web", NAMESPACE), 7)]
    return plan(snapshot, changes, Options(120))


@pytest.mark.parametrize("policy", ["Ignore", "Fail"])
@pytest.mark.parametrize("kind", ["ValidatingWebhookConfiguration", "MutatingWebhookConfiguration"])
def test_admission_webhooks_are_not_called(calls: list[str], kind: str, policy: str) -> None:
    hook = webhooks(kind, policy)
    objects = (*services(), hook, deployment("new", 2))
    for answer in (planned(settled(), *objects), planned(with_objects(*services(), hook), deployment("new", 2))):
        assert calls == []
        assert f"not called: {kind} hook" in answer.not_modelled
        assert [one for one in answer.problems if one.kind == "refused"] == []
        assert answer.totals.pods_created == 4


def test_conversion_webhooks_are_not_called(calls: list[str]) -> None:
    made = [definition(number, client) for number, client in enumerate(_ADDRESSES)]
    conditions = [{"type": one, "status": "True"} for one in ("NamesAccepted", "Established")]
    read = [
        {**one, "status": {"conditions": conditions, "acceptedNames": one["spec"]["names"], "storedVersions": ["v1"]}}
        for one in made
    ]
    names = ", ".join(one["metadata"]["name"] for one in made[:5])
    what = "conversion webhooks (fields are kept as they are) of CustomResourceDefinition"
    new = planned(settled(), *services(), *made, *things(1, 2))
    old = planned(with_objects(*read, *things(1, 2)), *things(2, 1))
    for answer in (new, old):
        assert calls == []
        assert f"not called: {what} {names} and 1 more" in answer.not_modelled
        assert [one for one in answer.problems if one.kind == "refused"] == []


def test_aggregated_servers_are_not_called(calls: list[str]) -> None:
    answer = planned(settled(), *services(), api_service())
    assert calls == []
    assert "not called: APIService v1.far.example.com" in answer.not_modelled


def test_nothing_else_is_called(calls: list[str]) -> None:
    answer = planned(settled(), *services(), *pods(), *volumes(), autoscaler())
    assert calls == []
    assert answer.differences


def test_the_watch_sees_connections(calls: list[str]) -> None:
    import socket

    with pytest.raises(PermissionError):
        socket.create_connection(("127.0.0.1", 1))
    assert len(calls) == 1
