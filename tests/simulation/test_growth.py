"""A cluster in which objects under new names come and go: no table grows with them, in no process."""

from collections.abc import Iterator
from typing import Any

from kcm_cli.component.metrics import Registry
from kcm_cli.machinery import codec
from kcm_cli.rest.transport import Request
from kcm_cli.sandbox.nodes.agents import NodeOptions
from kcm_cli.sandbox.transport import InProcessTransport
from tests.kit.embedded import ADMIN
from tests.kit.simulation import World, simulate
from tests.kit.tables import Growth

ROUNDS, EACH = 3, 3
GROUPS = {
    "deployments": "apps/v1",
    "statefulsets": "apps/v1",
    "daemonsets": "apps/v1",
    "jobs": "batch/v1",
    "cronjobs": "batch/v1",
    "rolebindings": "rbac.authorization.k8s.io/v1",
    "clusterroles": "rbac.authorization.k8s.io/v1",
    "horizontalpodautoscalers": "autoscaling/v2",
    "poddisruptionbudgets": "policy/v1",
    "customresourcedefinitions": "apiextensions.k8s.io/v1",
    "storageclasses": "storage.k8s.io/v1",
    "deviceclasses": "resource.k8s.io/v1",
    "resourceslices": "resource.k8s.io/v1",
    "resourceclaimtemplates": "resource.k8s.io/v1",
    "validatingadmissionpolicies": "admissionregistration.k8s.io/v1",
    "validatingadmissionpolicybindings": "admissionregistration.k8s.io/v1",
}
LABELLED = ("Family._children", "ServerMetrics._known")
"""Metrics have labels for each resource, zone and driver, upstream's too."""
LIMITED = ("Creator._decoded", "FlowClasses._known", "Bindings._grants", "PodIndex._groups", "Comparer._known")
"""These are emptied at 32, at 10,000 and at some thousand items; the fourth has the groups of a limited table, and the
last is emptied at 256 lists."""
BESIDE = ("EventLog._events", "Recent._kept", "VirtualLoop._ready")
"""These keep a limited number of items. The sandbox of a session fixture in the same process lives in real time, so
that its log and its cache of Leases grow while this test runs. The last has the tasks that are due in this instant."""


def template(name: str, **spec: Any) -> dict[str, Any]:
    return {"metadata": {"labels": {"app": name}}, "spec": {"containers": [{"name": "c", "image": "i"}], **spec}}


def workloads(at: int) -> Iterator[tuple[str, dict[str, Any]]]:
    """Objects of a namespace."""
    app, once = f"a{at}", template(f"j{at}", restartPolicy="Never")
    once["metadata"]["annotations"] = {"sandbox.kcm.dev/run-time": "5s"}
    of_app = {"selector": {"matchLabels": {"app": app}}, "template": template(app)}
    claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    volume = {"metadata": {"name": "v"}, "spec": {**claim, "storageClassName": "standard"}}
    yield "deployments", {"replicas": 2, **of_app}
    yield "statefulsets", {"serviceName": "s", **of_app, "volumeClaimTemplates": [volume]}
    yield "daemonsets", of_app
    yield "jobs", {"completions": 2, "template": once}
    yield "cronjobs", {"schedule": "* * * * *", "jobTemplate": {"spec": {"template": once}}}
    yield "services", {"selector": {"app": app}, "ports": [{"port": 80}]}
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": f"x{at}"}
    yield "horizontalpodautoscalers", {"scaleTargetRef": target, "maxReplicas": 3}
    yield "poddisruptionbudgets", {"minAvailable": 1, "selector": of_app["selector"]}
    yield "persistentvolumeclaims", {**claim, "storageClassName": ""}
    yield (
        "resourceclaimtemplates",
        {"spec": {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": f"x{at}"}}]}}},
    )
    device = {"resourceClaims": [{"name": "d", "resourceClaimTemplateName": f"x{at}"}]}
    yield "pods", {"containers": [{"name": "c", "image": "i", "resources": {"claims": [{"name": "d"}]}}], **device}


def cluster_wide(at: int) -> Iterator[tuple[str, dict[str, Any]]]:
    yield "nodes", {"metadata": {"labels": {"topology.kubernetes.io/zone": f"z{at}"}}, "spec": {}}
    source = {"csi": {"driver": "d.example.com", "volumeHandle": f"h{at}"}}
    yield (
        "persistentvolumes",
        {
            "spec": {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], **source},
        },
    )
    yield "clusterroles", {"rules": [{"apiGroups": [f"g{at}.test"], "resources": ["ws"], "verbs": ["get"]}]}
    yield "storageclasses", {"provisioner": "p.example.com"}
    yield "deviceclasses", {"spec": {"selectors": [{"cel": {"expression": f"device.driver == 'd{at}'"}}]}}
    pool = {"name": f"p{at}", "generation": 1, "resourceSliceCount": 1}
    slice_ = {"driver": f"d{at}", "nodeName": "node-1", "pool": pool, "devices": [{"name": "d"}]}
    yield "resourceslices", {"spec": slice_}
    rules = [{"apiGroups": ["*"], "apiVersions": ["*"], "resources": ["ws"], "operations": ["CREATE"]}]
    checks = [{"expression": f"object.metadata.name != 'bad{at}'"}]
    yield (
        "validatingadmissionpolicies",
        {
            "spec": {"matchConstraints": {"resourceRules": rules}, "validations": checks},
        },
    )
    yield "validatingadmissionpolicybindings", {"spec": {"policyName": f"x{at}", "validationActions": ["Deny"]}}


class Churn:
    """Creates objects with ``at`` in their names, and deletes them."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._transport = InProcessTransport(world.server.api, ADMIN)

    async def round(self, at: int) -> None:
        sleep, namespace = self._world.clock.sleep, f"n{at}"
        await self._send("POST", "namespaces", body={"metadata": {"name": namespace}})
        for plural, doc in cluster_wide(at):
            await self._create(plural, "", at, doc)
        plain = {"type": "object", "properties": {f"f{at}": {"type": "string", "pattern": f"^a{at}+$"}}}
        version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": plain}}
        names = {"plural": "ws", "kind": "W"}
        spec = {"group": f"g{at}.test", "scope": "Namespaced", "names": names, "versions": [version]}
        definition = {"metadata": {"name": f"ws.g{at}.test"}, "spec": spec}
        await self._send("POST", "customresourcedefinitions", body=definition)
        hard = {"pods": "50", f"count/ws.g{at}.test": "7"}
        await self._create("resourcequotas", namespace, at, {"spec": {"hard": hard}})
        await sleep(60)
        custom = f"/apis/g{at}.test/v1/namespaces/{namespace}/ws"
        kind = {"apiVersion": f"g{at}.test/v1", "kind": "W"}
        made = await self._ask("POST", custom, {**kind, "metadata": {"name": "w"}, f"f{at}": f"a{at}"})
        owner = {**kind, "name": "w", "uid": made["metadata"]["uid"]}
        await self._create("configmaps", namespace, at, {"metadata": {"ownerReferences": [owner]}})
        subject = {"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": f"u{at}"}
        role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": f"x{at}"}
        await self._create("rolebindings", namespace, at, {"roleRef": role, "subjects": [subject]})
        for plural, doc in workloads(at):
            await self._create(plural, namespace, at, {"spec": doc})
        await sleep(90)
        await self._ask("DELETE", f"{custom}/w")
        await self._send("DELETE", "customresourcedefinitions", definition["metadata"]["name"])
        await self._send("DELETE", "namespaces", namespace)
        for plural, _ in cluster_wide(at):
            await self._send("DELETE", plural, f"x{at}")
        await sleep(600)
        await self._ask("DELETE", "/api/v1/namespaces/default/events")

    async def _create(self, plural: str, namespace: str, at: int, doc: dict[str, Any]) -> None:
        whole = {**doc, "metadata": {**doc.get("metadata", {}), "name": f"x{at}"}}
        await self._send("POST", f"namespaces/{namespace}/{plural}" if namespace else plural, body=whole)

    async def _send(self, method: str, path: str, name: str = "", body: dict[str, Any] | None = None) -> None:
        group = GROUPS.get(path.rpartition("/")[2], "")
        base = f"/apis/{group}" if group else "/api/v1"
        await self._ask(method, f"{base}/{path}/{name}".rstrip("/"), body)

    async def _ask(self, method: str, path: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
        headers = {"content-type": "application/json"} if body else {}
        answer = await self._transport.send(Request(method, path, (), headers, codec.encode(body) if body else b""))
        assert answer.status < 300, (method, path, answer.body[:300])
        found: dict[str, Any] = codec.decode_doc(answer.body)
        return found


async def story(world: World) -> list[str]:
    growth, churn = Growth(), Churn(world)
    world.manager(metrics=Registry())
    await world.clock.sleep(60)
    for at in range(ROUNDS * EACH):
        await churn.round(at)
        if at % EACH == EACH - 1:
            world.server.store.compact(world.server.store.revision)
            growth.measure()
    return growth.found(EACH, LABELLED + LIMITED + BESIDE)


def test_no_table_grows_with_objects_that_come_and_go() -> None:
    assert simulate(3, story, NodeOptions(heartbeat_s=60.0)) == []
