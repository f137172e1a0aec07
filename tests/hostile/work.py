"""Ordinary work, one piece per family of controllers: what a user creates, and what has to come of it.

There are no kubelets: the pods of a work namespace become ready, or succeed, by what is written here.
"""

import asyncio
import base64
import itertools
import time
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from tests.differential.compare import Server
from tests.differential.variations import Tree

POLL_S = 0.3
SHOWN = 1000
"""Of an answer, so many characters from its end: an object's status comes last."""
NODE = "work-node"
CONTAINERS: list[Tree] = [{"name": "c", "image": "x"}]
_ATTACHED = "volumes.kubernetes.io/controller-managed-attach-detach"
_CSRS = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
_POLICIES = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies"


class Refused(AssertionError):
    """The API server did not take an ordinary object."""


@dataclass
class Place:
    """One namespace in which one round of work is done. ``seen``: the last answer, for whoever waits too long."""

    server: Server
    namespace: str
    seen: object = None

    def path(self, version: str, plural: str, name: str = "") -> str:
        """Of a collection in the namespace, or of an object: ``apps/v1``, ``deployments``."""
        root = f"/{'apis' if '/' in version else 'api'}/{version}/namespaces/{self.namespace}/{plural}"
        return f"{root}/{name}" if name else root

    async def send(self, path: str, doc: Tree, method: str = "POST") -> Tree:
        """Create or replace. Raises Refused."""
        for attempt in itertools.count():
            answer = await self.server.ask(method, path, doc)
            self.seen = method, path, answer.status, answer.body
            if answer.status in (200, 201):
                return dict(answer.body)
            # A new namespace has no service account yet, and a quota no status.
            if attempt > 100 or answer.status not in (0, 403, 404, 429, 500):
                raise Refused(f"{method} {path}: {answer.status} {answer.body}")
            await asyncio.sleep(POLL_S)
        raise AssertionError

    async def get(self, path: str) -> Any:
        """The document; None where there is none, or no answer."""
        answer = await self.server.ask("GET", path)
        self.seen = "GET", path, answer.status, answer.body
        return answer.body if answer.status == 200 else None

    async def items(self, path: str, selector: str = "") -> list[Tree]:
        found = await self.get(f"{path}?labelSelector={selector}" if selector else path)
        return list((found or {}).get("items") or ())

    async def delete(self, path: str) -> None:
        """Delete an object, unless another client did. Raises Refused."""
        options = {"propagationPolicy": "Background", "gracePeriodSeconds": 0}
        for attempt in itertools.count():
            answer = await self.server.ask("DELETE", path, options)
            self.seen = "DELETE", path, answer.status, answer.body
            if answer.status in (200, 202, 404, 409):
                return
            if attempt > 100 or answer.status not in (0, 403, 429, 500):
                raise Refused(f"DELETE {path}: {answer.status} {answer.body}")
            await asyncio.sleep(POLL_S)

    async def until(self, check: Callable[[], Awaitable[object]]) -> None:
        """Wait for the check to hold; how long, the caller of the work decides."""
        while not await check():
            await asyncio.sleep(POLL_S)

    async def until_found(self, path: str, holds: Callable[[Tree], object]) -> None:
        """Wait for an object to be there and to be so."""

        async def check() -> object:
            doc = await self.get(path)
            return doc is not None and holds(doc)

        await self.until(check)

    async def until_absent(self, path: str) -> None:
        async def check() -> object:
            return (await self.server.ask("GET", path)).status == 404

        await self.until(check)

    async def run_pods(self, app: str, count: int, phase: str = "Running") -> None:
        """Wait for pods and be their kubelet until so many have the phase: they may be deleted right after that."""

        async def check() -> object:
            pods, having = await self.items(self.path("v1", "pods"), f"app%3D{app}"), 0
            for pod in pods:
                if "deletionTimestamp" in pod["metadata"]:
                    continue
                if (pod.get("status") or {}).get("phase") != phase:
                    item = f"{self.path('v1', 'pods', pod['metadata']['name'])}/status"
                    answer = await self.server.ask("PUT", item, {**pod, "status": _pod_status(phase)})
                    having += answer.status == 200
                else:
                    having += 1
            return having >= count

        await self.until(check)


def _pod_status(phase: str) -> Tree:
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    ready = {"type": "Ready", "status": "True" if phase == "Running" else "False", "lastTransitionTime": now}
    address = "10.1.2.3"
    return {"phase": phase, "conditions": [ready], "podIP": address, "podIPs": [{"ip": address}], "startTime": now}


def _meta(name: str, **more: Any) -> Tree:
    return {"metadata": {"name": name, **more}}


def _template(app: str, **spec: Any) -> Tree:
    return {"metadata": {"labels": {"app": app}}, "spec": {"containers": CONTAINERS, **spec}}


def _workload(app: str, **spec: Any) -> Tree:
    selector = {"matchLabels": {"app": app}}
    return {**_meta(app), "spec": {"selector": selector, "template": _template(app), **spec}}


def _condition(doc: Tree, type_: str) -> str:
    """The status of a condition; empty where there is none."""
    found = ((doc.get("status") or {}).get("conditions") or ()) if doc else ()
    return next((str(one["status"]) for one in found if one["type"] == type_), "")


async def _volume(place: Place, name: str, spec: Tree) -> None:
    """A volume that a claim can have at once; a claim that finds none waits for the next resync."""
    await place.send("/api/v1/persistentvolumes", {**_meta(name), "spec": spec})
    item = f"/api/v1/persistentvolumes/{name}"
    await place.until_found(item, lambda doc: (doc.get("status") or {}).get("phase") == "Available")


def _bound(claim: Tree) -> bool:
    return (claim.get("status") or {}).get("phase") == "Bound"


async def deployment(place: Place) -> None:
    """Rolls out, is updated, and takes its ReplicaSets along."""
    item, sets = place.path("apps/v1", "deployments", "web"), place.path("apps/v1", "replicasets")
    await place.send(place.path("apps/v1", "deployments"), _workload("web", replicas=2))
    await place.run_pods("web", 2)
    await place.until_found(item, lambda doc: (doc.get("status") or {}).get("availableReplicas") == 2)
    await place.delete(item)

    async def gone() -> object:
        pods = await place.items(place.path("v1", "pods"), "app%3Dweb")
        return not pods and not await place.items(sets, "app%3Dweb")

    await place.until(gone)


async def statefulset(place: Place) -> None:
    """Pods one after the other, and a revision."""
    await place.send(place.path("apps/v1", "statefulsets"), _workload("db", replicas=2, serviceName="db"))
    await place.run_pods("db", 2)
    item = place.path("apps/v1", "statefulsets", "db")
    await place.until_found(item, lambda doc: (doc.get("status") or {}).get("readyReplicas") == 2)
    await place.delete(item)


async def daemonset(place: Place) -> None:
    """A pod on the one node that it selects."""
    template = _template("agent", nodeSelector={"work": "yes"})
    await place.send(place.path("apps/v1", "daemonsets"), _workload("agent", template=template))
    await place.run_pods("agent", 1)
    item = place.path("apps/v1", "daemonsets", "agent")
    await place.until_found(item, lambda doc: (doc.get("status") or {}).get("numberReady") == 1)
    await place.delete(item)


async def replication_controller(place: Place) -> None:
    spec = {"replicas": 1, "selector": {"app": "old"}, "template": _template("old")}
    await place.send(place.path("v1", "replicationcontrollers"), {**_meta("old"), "spec": spec})
    await place.run_pods("old", 1)
    item = place.path("v1", "replicationcontrollers", "old")
    await place.until_found(item, lambda doc: (doc.get("status") or {}).get("readyReplicas") == 1)
    await place.delete(item)


async def job(place: Place) -> None:
    """Completes, and is deleted after it has finished."""
    template = _template("task", restartPolicy="Never")
    spec = {"template": template, "ttlSecondsAfterFinished": 0, "completions": 2, "parallelism": 2}
    await place.send(place.path("batch/v1", "jobs"), {**_meta("task"), "spec": spec})
    await place.run_pods("task", 2, "Succeeded")
    await place.until_absent(place.path("batch/v1", "jobs", "task"))


async def cron_job(place: Place) -> None:
    """A Job for the time that was missed."""
    template = {"spec": {"template": _template("tick", restartPolicy="Never"), "backoffLimit": 0}}
    spec = {"schedule": "* * * * *", "jobTemplate": template, "suspend": True}
    crons, item = place.path("batch/v1", "cronjobs"), place.path("batch/v1", "cronjobs", "tick")
    made = await place.send(crons, {**_meta("tick"), "spec": spec})
    past = (datetime.now(UTC) - timedelta(minutes=2)).strftime("%Y-%m-%dT%H:%M:%SZ")
    made = await place.send(f"{item}/status", {**made, "status": {"lastScheduleTime": past}}, "PUT")
    await place.send(item, {**made, "spec": {**made["spec"], "suspend": False}}, "PUT")

    async def started() -> object:
        jobs = await place.items(place.path("batch/v1", "jobs"))
        return [job for job in jobs if job["metadata"]["name"].startswith("tick-")]

    await place.until(started)
    await place.delete(item)


async def service(place: Place) -> None:
    """Endpoints and EndpointSlices of a ready pod, and the mirror of Endpoints that a user wrote."""
    pod = {**_meta("backend", labels={"app": "backend"}), "spec": {"containers": CONTAINERS, "nodeName": NODE}}
    await place.send(place.path("v1", "pods"), pod)
    ports = [{"port": 80}]
    await place.send(
        place.path("v1", "services"), {**_meta("front"), "spec": {"selector": {"app": "backend"}, "ports": ports}}
    )
    await place.send(place.path("v1", "services"), {**_meta("hand"), "spec": {"ports": ports}})
    subsets = [{"addresses": [{"ip": "10.9.9.9"}], "ports": ports}]
    await place.send(place.path("v1", "endpoints"), {**_meta("hand"), "subsets": subsets})
    await place.run_pods("backend", 1)
    await place.until_found(place.path("v1", "endpoints", "front"), lambda doc: doc.get("subsets"))
    slices = place.path("discovery.k8s.io/v1", "endpointslices")

    async def sliced() -> object:
        found = [await place.items(slices, f"kubernetes.io/service-name%3D{name}") for name in ("front", "hand")]
        return all(any(one.get("endpoints") for one in each) for each in found)

    await place.until(sliced)


async def namespace(place: Place) -> None:
    """Gets its account and the cluster's CA, and is deleted with all that is in it."""
    inner = Place(place.server, f"{place.namespace}-inner")
    item = f"/api/v1/namespaces/{inner.namespace}"
    await place.send("/api/v1/namespaces", _meta(inner.namespace))
    await place.until_found(inner.path("v1", "serviceaccounts", "default"), bool)
    await place.until_found(inner.path("v1", "configmaps", "kube-root-ca.crt"), lambda doc: doc.get("data"))
    await place.send(inner.path("v1", "configmaps"), _meta("c"))
    await place.send(inner.path("apps/v1", "deployments"), _workload("w", replicas=1))
    await place.delete(item)
    await place.until_absent(item)


async def quota(place: Place) -> None:
    """Counts what is used, and what no longer is."""
    item = place.path("v1", "resourcequotas", "q")
    await place.send(place.path("v1", "resourcequotas"), {**_meta("q"), "spec": {"hard": {"count/podtemplates": "5"}}})
    await place.until_found(item, lambda doc: (doc.get("status") or {}).get("hard"))
    await asyncio.sleep(POLL_S)  # what is created before the server's admission knows the quota is counted by nobody
    await place.send(place.path("v1", "podtemplates"), {**_meta("s"), "template": _template("s")})

    def used(count: str) -> Callable[[Tree], object]:
        return lambda doc: ((doc.get("status") or {}).get("used") or {}).get("count/podtemplates") == count

    await place.until_found(item, used("1"))
    await place.delete(place.path("v1", "podtemplates", "s"))
    await place.until_found(item, used("0"))


async def claim(place: Place) -> None:
    """A claim is bound to its volume, and protected."""
    name = f"{place.namespace}-volume"
    more = {"accessModes": ["ReadWriteOnce"], "storageClassName": name}
    volume = {"capacity": {"storage": "1Gi"}, "hostPath": {"path": "/x"}, "persistentVolumeReclaimPolicy": "Retain"}
    await _volume(place, name, {**volume, **more})
    wants = {"resources": {"requests": {"storage": "1Gi"}}, **more}
    await place.send(place.path("v1", "persistentvolumeclaims"), {**_meta("c"), "spec": wants})
    item = place.path("v1", "persistentvolumeclaims", "c")
    await place.until_found(item, lambda doc: _bound(doc) and doc["metadata"].get("finalizers"))
    await place.delete(item)
    await place.until_absent(item)
    await place.delete(f"/api/v1/persistentvolumes/{name}")
    await place.until_absent(f"/api/v1/persistentvolumes/{name}")


async def pod_claims(place: Place) -> None:
    """A pod's generic ephemeral volume and its ResourceClaim are made from their templates."""
    wants = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    volume = {"name": "v", "ephemeral": {"volumeClaimTemplate": {"spec": wants}}}
    template = {**_meta("t"), "spec": {"spec": {"devices": {}}}}
    await place.send(place.path("resource.k8s.io/v1", "resourceclaimtemplates"), template)
    claims = [{"name": "r", "resourceClaimTemplateName": "t"}]
    containers = [{**CONTAINERS[0], "resources": {"claims": [{"name": "r"}]}}]
    spec = {"containers": containers, "volumes": [volume], "resourceClaims": claims}
    await place.send(place.path("v1", "pods"), {**_meta("p"), "spec": spec})
    await place.until_found(place.path("v1", "persistentvolumeclaims", "p-v"), bool)
    await place.until_found(
        place.path("v1", "pods", "p"), lambda doc: (doc.get("status") or {}).get("resourceClaimStatuses")
    )


async def attachment(place: Place) -> None:
    """A volume of a pod is attached to its node."""
    name = f"{place.namespace}-attached"
    more = {"accessModes": ["ReadWriteOnce"], "storageClassName": name}
    source = {"capacity": {"storage": "1Gi"}, "csi": {"driver": "work.example.com", "volumeHandle": name}}
    retained = {"persistentVolumeReclaimPolicy": "Retain"}
    await _volume(place, name, {**source, **retained, **more})
    wants = {"resources": {"requests": {"storage": "1Gi"}}, **more}
    await place.send(place.path("v1", "persistentvolumeclaims"), {**_meta("a"), "spec": wants})
    await place.until_found(place.path("v1", "persistentvolumeclaims", "a"), _bound)
    volume = {"name": "v", "persistentVolumeClaim": {"claimName": "a"}}
    spec = {"nodeName": NODE, "containers": CONTAINERS, "volumes": [volume]}
    await place.send(place.path("v1", "pods"), {**_meta("attached"), "spec": spec})

    async def attached() -> object:
        found = await place.items("/apis/storage.k8s.io/v1/volumeattachments")
        return [one for one in found if one["spec"]["source"].get("persistentVolumeName") == name]

    await place.until(attached)
    await place.delete(f"/api/v1/persistentvolumes/{name}")


async def autoscaler(place: Place) -> None:
    """Says that it finds no metrics."""
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "scaled"}
    await place.send(place.path("apps/v1", "deployments"), _workload("scaled", replicas=1))
    spec = {"scaleTargetRef": target, "minReplicas": 1, "maxReplicas": 3}
    await place.send(place.path("autoscaling/v2", "horizontalpodautoscalers"), {**_meta("h"), "spec": spec})
    item = place.path("autoscaling/v2", "horizontalpodautoscalers", "h")
    await place.until_found(item, lambda doc: _condition(doc, "AbleToScale"))


async def disruption_budget(place: Place) -> None:
    pod = {**_meta("kept", labels={"app": "kept"}), "spec": {"containers": CONTAINERS}}
    await place.send(place.path("v1", "pods"), pod)
    await place.run_pods("kept", 1)
    spec = {"minAvailable": 1, "selector": {"matchLabels": {"app": "kept"}}}
    await place.send(place.path("policy/v1", "poddisruptionbudgets"), {**_meta("b"), "spec": spec})
    item = place.path("policy/v1", "poddisruptionbudgets", "b")
    await place.until_found(item, lambda doc: (doc.get("status") or {}).get("currentHealthy") == 1)


async def garbage(place: Place) -> None:
    """What a deleted owner owned is deleted."""
    owner = await place.send(place.path("v1", "configmaps"), _meta("owner"))
    refs = [{"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": owner["metadata"]["uid"]}]
    await place.send(place.path("v1", "secrets"), _meta("owned", ownerReferences=refs))
    await place.delete(place.path("v1", "configmaps", "owner"))
    await place.until_absent(place.path("v1", "secrets", "owned"))


async def token(place: Place) -> None:
    """A Secret of a service account gets its token."""
    await place.send(place.path("v1", "serviceaccounts"), _meta("robot"))
    annotations = {"kubernetes.io/service-account.name": "robot"}
    secret = {**_meta("robot", annotations=annotations), "type": "kubernetes.io/service-account-token"}
    await place.send(place.path("v1", "secrets"), secret)
    await place.until_found(place.path("v1", "secrets", "robot"), lambda doc: "token" in (doc.get("data") or {}))


async def certificate(place: Place) -> None:
    """An approved request is signed."""
    name = f"{place.namespace}-request"
    subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "worker")])
    request = x509.CertificateSigningRequestBuilder().subject_name(subject)
    pem = request.sign(ec.generate_private_key(ec.SECP256R1()), hashes.SHA256()).public_bytes(
        serialization.Encoding.PEM
    )
    spec = {"request": base64.b64encode(pem).decode(), "signerName": "kubernetes.io/kube-apiserver-client"}
    made = await place.send(_CSRS, {**_meta(name), "spec": {**spec, "usages": ["client auth"]}})
    approved = {"type": "Approved", "status": "True", "reason": "Work", "message": "approved"}
    await place.send(f"{_CSRS}/{name}/approval", {**made, "status": {"conditions": [approved]}}, "PUT")
    await place.until_found(f"{_CSRS}/{name}", lambda doc: (doc.get("status") or {}).get("certificate"))
    await place.delete(f"{_CSRS}/{name}")


async def cluster_role(place: Place) -> None:
    """An aggregated role has the rules of the roles that it selects."""
    roles = "/apis/rbac.authorization.k8s.io/v1/clusterroles"
    rules = [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]
    labels = {"work": place.namespace}
    await place.send(roles, {**_meta(f"{place.namespace}-part", labels=labels), "rules": rules})
    selectors = {"clusterRoleSelectors": [{"matchLabels": labels}]}
    await place.send(roles, {**_meta(f"{place.namespace}-all"), "aggregationRule": selectors, "rules": []})
    await place.until_found(f"{roles}/{place.namespace}-all", lambda doc: doc.get("rules"))
    for part in ("part", "all"):
        await place.delete(f"{roles}/{place.namespace}-{part}")


async def policy(place: Place) -> None:
    """The types in a policy's expressions are checked."""
    name = f"{place.namespace}.example.com"
    rule = {"operations": ["CREATE"], "apiGroups": ["none.example.com"], "apiVersions": ["v1"], "resources": ["none"]}
    spec = {"matchConstraints": {"resourceRules": [rule]}, "validations": [{"expression": "true"}]}
    await place.send(_POLICIES, {**_meta(name), "spec": spec})
    await place.until_found(f"{_POLICIES}/{name}", lambda doc: (doc.get("status") or {}).get("observedGeneration"))
    await place.delete(f"{_POLICIES}/{name}")


async def node(place: Place) -> None:
    """A node that is cordoned is tainted; what does not tolerate another taint is evicted."""
    name = f"{place.namespace}-node"
    item = f"/api/v1/nodes/{name}"
    await place.send("/api/v1/nodes", ready_node(name))
    spec = {"nodeName": name, "containers": CONTAINERS}
    await place.send(place.path("v1", "pods"), {**_meta("evicted"), "spec": spec})

    async def cordoned() -> object:
        made = await place.get(item) or {}
        taints = (made.get("spec") or {}).get("taints") or []
        if any(taint["key"] == "node.kubernetes.io/unschedulable" for taint in taints):
            return True
        await place.server.ask("PUT", item, {**made, "spec": {**made.get("spec", {}), "unschedulable": True}})
        return False

    await place.until(cordoned)

    async def evicted() -> object:
        made = await place.get(item) or {}
        taints = (made.get("spec") or {}).get("taints") or []
        if not any(taint["key"] == "work" for taint in taints):
            taints = [*taints, {"key": "work", "effect": "NoExecute"}]
            await place.server.ask("PUT", item, {**made, "spec": {**made.get("spec", {}), "taints": taints}})
        pod = await place.server.ask("GET", place.path("v1", "pods", "evicted"))
        return pod.status == 404 or (pod.status == 200 and "deletionTimestamp" in pod.body["metadata"])

    await place.until(evicted)
    await place.server.ask("DELETE", f"{place.path('v1', 'pods', 'evicted')}", {"gracePeriodSeconds": 0})
    await place.delete(item)


Work = Callable[[Place], Coroutine[Any, Any, None]]
WORK: tuple[Work, ...] = (
    deployment, statefulset, daemonset, replication_controller, job, cron_job, service, namespace, quota, claim,
    pod_claims, attachment, autoscaler, disruption_budget, garbage, token, certificate, cluster_role, policy, node,
)  # fmt: skip


def ready_node(name: str, **labels: str) -> Tree:
    """A node whose kubelet has just reported."""
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    ready = {"type": "Ready", "status": "True", "reason": "KubeletReady", "lastHeartbeatTime": now}
    resources = {"cpu": "8", "memory": "16Gi", "pods": "110"}
    status = {"conditions": [{**ready, "lastTransitionTime": now}], "capacity": resources, "allocatable": resources}
    metadata = {"labels": {"kubernetes.io/hostname": name, **labels}, "annotations": {_ATTACHED: "true"}}
    return {**_meta(name, **metadata), "status": status}


@dataclass
class Rounds:
    """Does all the work again and again, each round in a namespace that is made for it and deleted."""

    server: Server
    works: Iterable[Work]
    times: dict[str, dict[str, list[float]]]
    failed: list[str]
    _count: int = 0

    async def prepare(self) -> None:
        """The node on which pods are, and its driver."""
        everywhere = Place(self.server, "default")
        await everywhere.send("/api/v1/nodes", ready_node(NODE, work="yes"))

    async def round(self, phase: str, limit_s: float) -> None:
        """Do all the work at once; note how long each piece took, and what took longer than the limit."""
        self._count += 1
        place = Place(self.server, f"work-{self._count}")
        await place.send("/api/v1/namespaces", _meta(place.namespace))
        await asyncio.gather(*(self._timed(phase, work, replace(place), limit_s) for work in self.works))
        await place.delete(f"/api/v1/namespaces/{place.namespace}")

    async def _timed(self, phase: str, work: Work, place: Place, limit_s: float) -> None:
        name = getattr(work, "__name__", str(work))
        started = time.monotonic()
        try:
            async with asyncio.timeout(limit_s):
                await work(place)
        except (TimeoutError, Refused) as error:
            why = str(error) or f"not within {limit_s:g} s; last seen: {str(place.seen)[-SHOWN:]}"
            self.failed.append(f"{phase}: {name} in {place.namespace}: {why}")
        self.times.setdefault(phase, {}).setdefault(name, []).append(time.monotonic() - started)
