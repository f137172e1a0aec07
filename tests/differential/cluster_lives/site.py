"""Where the life of cluster objects happens: what people send, and the work of kubelets and drivers."""

import json
import re
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from tests.differential.cluster_lives.certificates import request
from tests.differential.living import Doc, Scene, wanted_node

NAMESPACED = {
    "api/v1": (
        "pods", "services", "endpoints", "configmaps", "secrets", "serviceaccounts", "resourcequotas",
        "persistentvolumeclaims", "replicationcontrollers", "events",
    ),
    "apis/apps/v1": ("deployments", "replicasets", "statefulsets", "daemonsets", "controllerrevisions"),
    "apis/batch/v1": ("jobs", "cronjobs"),
    "apis/discovery.k8s.io/v1": ("endpointslices",),
    "apis/policy/v1": ("poddisruptionbudgets",),
    "apis/autoscaling/v2": ("horizontalpodautoscalers",),
    "apis/resource.k8s.io/v1": ("resourceclaims", "resourceclaimtemplates"),
    "apis/scheduling.k8s.io/v1alpha2": ("podgroups", "workloads"),
}  # fmt: skip
CLUSTER = {
    "api/v1": ("namespaces", "nodes", "persistentvolumes"),
    "apis/storage.k8s.io/v1": ("storageclasses", "volumeattachments", "csidrivers", "volumeattributesclasses"),
    "apis/certificates.k8s.io/v1": ("certificatesigningrequests",),
    "apis/rbac.authorization.k8s.io/v1": ("clusterroles",),
    "apis/networking.k8s.io/v1": ("servicecidrs",),
    "apis/resource.k8s.io/v1": ("resourceslices",),
    "apis/resource.k8s.io/v1beta2": ("devicetaintrules",),
    "apis/admissionregistration.k8s.io/v1": ("validatingadmissionpolicies",),
}
PATHS = {plural: path for group in (NAMESPACED, CLUSTER) for path, plurals in group.items() for plural in plurals}
OF_CLUSTER = {plural for plurals in CLUSTER.values() for plural in plurals}
LIFE = re.compile(r"\bl\d+\b")
RANDOM_END = r"-[bcdfghjklmnpqrstvwxz2456789]{5}\b"
VAIN = ("NotFound", "AlreadyExists")
LONG_AGO = "2026-01-01T00:00:00Z"


def life_of(*texts: str) -> str:
    """The life that the first of these texts with one names, or none."""
    return next((found[0] for text in texts if (found := LIFE.search(text))), "")


def home(plural: str, obj: Doc) -> str:
    """The life of an object."""
    meta = obj["metadata"]
    if plural == "volumeattachments":
        return life_of(obj["spec"]["nodeName"])
    if plural == "events":
        return life_of(meta["namespace"], obj["involvedObject"].get("name", ""))
    return life_of(meta.get("namespace", ""), meta["name"])


@dataclass
class Site(Scene):
    """A life's namespace and cluster objects. ``lost``: nodes whose kubelets are silent, of all lives."""

    lost: set[str]
    done: list[str] = field(default_factory=list)
    answers: list[str] = field(default_factory=list)

    def path(self, plural: str, name: str = "", namespace: str = "") -> str:
        within = "" if plural in OF_CLUSTER else f"/namespaces/{namespace or self.namespace}"
        return f"/{PATHS[plural]}{within}/{plural}" + (f"/{name}" if name else "")

    def filled(self, text: str) -> str:
        """Put in the name of the life for ``$``, and what ``@uid(PLURAL/NAME)`` and so on ask for."""

        def uid(plural: str, _: str, name: str) -> str:
            found = (obj["metadata"] for obj in self.items(plural))
            return next((meta["uid"] for meta in found if meta["name"] == name), "none")

        def ago(seconds: str) -> str:
            return f"{datetime.now(UTC) - timedelta(seconds=int(seconds)):%Y-%m-%dT%H:%M:%SZ}"

        def minute(ago: str) -> str:
            return str((datetime.now(UTC) - timedelta(minutes=int(ago))).minute)

        known: dict[str, Callable[[str], str]] = {
            "uid": lambda words: uid(*words.partition("/")),
            "ago": ago,
            "minute": minute,
            "request": request,
        }
        text = text.replace("$", self.namespace)
        return re.sub(r"@(uid|ago|minute|request)\(([^)]*)\)", lambda found: known[found[1]](found[2]), text)

    def told(self) -> str:
        """What was done since this was last asked."""
        done, self.done = self.done, []
        return "; ".join(done)

    async def send(self, method: str, plural: str, name: str, body: Doc | None, sub: str, where: str) -> bool:
        """Whether it was not in vain. ``where``: another namespace."""
        if method == "POST":
            body = {**(body or {}), "metadata": {"name": name, **(body or {}).get("metadata", {})}}
        filled = None if body is None else json.loads(self.filled(json.dumps(body)))
        path = self.path(plural, "" if method == "POST" else self.filled(name), self.filled(where)) + sub
        answer = await self.api.ask(method, path, filled)
        told = answer["reason"] if answer["kind"] == "Status" and answer["status"] == "Failure" else "done"
        if told in VAIN:
            return False
        if method == "POST" and told == "done":
            self.mirror.made(plural, answer)
        self.done.append(f"{method} {where} {plural}{sub} {name} {json.dumps(body)}")
        self.answers.append(f"{method} {where} {plural}{sub} {re.sub(RANDOM_END, '*', name)}: {told}")
        return True

    def lose(self, node: str) -> None:
        """A kubelet falls silent."""
        self.done.append(f"LOSE {node}")
        self.lost.add(self.filled(node))

    async def find(self, node: str) -> None:
        """It is back."""
        self.lost.discard(self.filled(node))
        condition = {"type": "Ready", "status": "True", "reason": "KubeletReady", "lastHeartbeatTime": "@ago(0)"}
        await self.send("PATCH", "nodes", node, {"status": {"conditions": [condition]}}, "/status", "")

    async def publish(self, group: str, plural: str, metric: Doc) -> None:
        """Apply an object of a metrics API, which definitions of custom resources play."""
        path = f"/apis/{group}/v1beta1/namespaces/{self.namespace}/{plural}/{metric['metadata']['name']}"
        body = {"apiVersion": f"{group}/v1beta1", "timestamp": self.filled("@ago(0)"), **metric}
        await self.api.ask("PATCH", path + "?fieldManager=metrics&force=true", body, "application/apply-patch+yaml")

    # -- kubelets and drivers

    async def kubelets(self) -> None:
        for pod in self.items("pods"):
            if pod["spec"].get("nodeName") not in self.lost:
                await self.run(pod)
        for attachment in self.items("volumeattachments"):
            path = self.path("volumeattachments", attachment["metadata"]["name"])
            if not attachment["status"]["attached"] and "attachError" not in attachment["status"]:
                await self.api.ask("PATCH", path + "/status", {"status": {"attached": True}})
        for node in self.items("nodes"):
            name, status = node["metadata"]["name"], node["status"]
            attached = {volume["name"] for volume in status.get("volumesAttached") or ()}
            used = any(pod["spec"].get("nodeName") == name for pod in self.items("pods"))
            in_use = sorted(attached) if used else None
            if name not in self.lost and status.get("volumesInUse") != in_use:
                body = {"status": {"volumesInUse": in_use}}
                await self.api.ask("PATCH", self.path("nodes", name) + "/status", body)

    async def run(self, pod: Doc) -> None:
        meta, status = pod["metadata"], pod.get("status", {})
        labels, path = meta.get("labels", {}), self.path("pods", meta["name"], meta["namespace"])
        if "deletionTimestamp" in meta:
            if status.get("phase") in ("Pending", "Running") and "hangs" not in labels:
                await self.api.ask("PATCH", path + "/status", {"status": {"phase": "Failed", "conditions": []}})
            elif not meta.get("finalizers") and "hangs" not in labels:
                options = {"gracePeriodSeconds": 0, "preconditions": {"uid": meta["uid"]}}
                await self.api.ask("DELETE", path, options)
            return
        if not pod["spec"].get("nodeName") and (node := wanted_node(pod)):
            binding = {"metadata": {"name": meta["name"]}, "target": {"kind": "Node", "name": node}}
            await self.api.ask("POST", path + "/binding", binding)
        seen = any(condition["type"] == "Ready" for condition in status.get("conditions") or ())
        if status.get("phase", "Pending") == "Pending" and not seen and "waits" not in labels:
            address = "10.9.0.0" if "generateName" in meta else "10.9.1." + str(zlib.crc32(meta["name"].encode()) % 250)
            ready = {"type": "Ready", "status": "True", "lastTransitionTime": LONG_AGO}
            running = {"phase": "Running", "conditions": [ready], "startTime": LONG_AGO}
            body = {"status": {**running, "podIP": address, "podIPs": [{"ip": address}]}}
            await self.api.ask("PATCH", path + "/status", body)
