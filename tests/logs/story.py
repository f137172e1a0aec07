"""What happens in the recorded cluster: workloads come, change and go for every reason that a manager has.

Names have no hyphen, so that what comes before the first one is an object's workload.
"""

from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

from kcm_cli.api.resource import GVR, Resource
from kcm_cli.machinery import codec
from kcm_cli.machinery.codec import Doc
from kcm_cli.machinery.meta import PartialObject
from kcm_cli.planning.actions import MERGE
from kcm_cli.rest.client import Client
from kcm_cli.rest.errors import NotFound, TooManyRequests
from kcm_cli.rest.listing import read_page
from kcm_cli.rest.transport import Request
from kcm_cli.sandbox.nodes import commands, shape

SPACE = "told"
SETTLE_S = 12.0
NOBODY = "1b2a7f0e-5a4e-4f0e-9d6e-000000000000"
Sleep = Callable[[float], Awaitable[None]]


def workload_of(name: str) -> str:
    """The workload that an object belongs to."""
    return name.partition("-")[0]


def kind(path: str, name: str, *, namespaced: bool = True) -> Resource[PartialObject]:
    """The resource of a path such as ``apps/v1/deployments``."""
    group, version, plural = ("/" + path).rsplit("/", 2)
    return Resource(GVR(group.strip("/"), version, plural), name, PartialObject, namespaced)


NAMESPACES = kind("v1/namespaces", "Namespace", namespaced=False)
NODES = kind("v1/nodes", "Node", namespaced=False)
PODS = kind("v1/pods", "Pod")
QUOTAS = kind("v1/resourcequotas", "ResourceQuota")
CONFIG_MAPS = kind("v1/configmaps", "ConfigMap")
SERVICES = kind("v1/services", "Service")
DEPLOYMENTS = kind("apps/v1/deployments", "Deployment")
REPLICA_SETS = kind("apps/v1/replicasets", "ReplicaSet")
STATEFUL_SETS = kind("apps/v1/statefulsets", "StatefulSet")
DAEMON_SETS = kind("apps/v1/daemonsets", "DaemonSet")
JOBS = kind("batch/v1/jobs", "Job")
CRON_JOBS = kind("batch/v1/cronjobs", "CronJob")
AUTOSCALERS = kind("autoscaling/v2/horizontalpodautoscalers", "HorizontalPodAutoscaler")
BUDGETS = kind("policy/v1/poddisruptionbudgets", "PodDisruptionBudget")


def template(app: str, *, image: str = "app:1", notes: Doc | None = None, **spec: Any) -> Doc:
    """A pod template of one container."""
    metadata: Doc = {"labels": {"app": app}}
    if notes:
        metadata["annotations"] = notes
    return {"metadata": metadata, "spec": {"containers": [{"name": "c", "image": image}], **spec}}


def workload(app: str, replicas: int, pods: Doc | None = None, **spec: Any) -> Doc:
    """The spec of a workload of an app."""
    return {
        "replicas": replicas,
        "selector": {"matchLabels": {"app": app}},
        "template": pods or template(app),
        **spec,
    }


class Story:
    """Played by a client that may do everything; ``sleep`` waits in the cluster's time."""

    def __init__(self, client: Client, sleep: Sleep) -> None:
        self._client, self._sleep = client, sleep

    async def begin(self) -> None:
        """Nodes and namespaces, settled."""
        await self._nodes()

    async def play(self) -> None:
        """The whole story."""
        await self.begin()
        await self._workloads()
        await self._jobs()
        await self._pressure()
        await self._drain()
        await self._node_falls_silent()
        await self._nodes_go()
        await self._all_goes()

    async def make(self, resource: Resource[Any], name: str, space: str = SPACE, **fields: Any) -> None:
        doc: Doc = {"metadata": {"name": name, **fields.pop("metadata", {})}, **fields}
        await self._client.create(resource, space if resource.namespaced else "", doc)

    async def change(self, resource: Resource[Any], name: str, body: Doc) -> None:
        space = SPACE if resource.namespaced else ""
        await self._client.patch(resource, space, name, body, content_type=MERGE)

    async def drop(self, resource: Resource[Any], name: str, propagation: str = "Background", **options: Any) -> None:
        space = SPACE if resource.namespaced else ""
        try:
            await self._client.delete(resource, space, name, propagation=propagation, **options)
        except NotFound:
            return

    async def settle(self, seconds: float = SETTLE_S) -> None:
        await self._sleep(seconds)

    async def _nodes(self) -> None:
        for number in range(1, 4):
            labels = {"topology.kubernetes.io/zone": f"zone{number}"}
            notes = {shape.SIMULATED: "true", shape.CAPACITY: "cpu=8,memory=16Gi"}
            await self.make(NODES, f"n{number}", metadata={"labels": labels, "annotations": notes})
        await self.make(NAMESPACES, SPACE)
        await self.make(NAMESPACES, "doomed")
        await self.settle()

    async def _workloads(self) -> None:
        await self.make(DEPLOYMENTS, "web", spec=workload("web", 2))
        await self.make(SERVICES, "web", spec={"selector": {"app": "web"}, "ports": [{"port": 80}]})
        await self.make(STATEFUL_SETS, "db", spec={**workload("db", 2), "serviceName": "db"})
        daemons = workload("agent", 0)
        del daemons["replicas"]
        await self.make(DAEMON_SETS, "agent", spec=daemons)
        await self.make(DEPLOYMENTS, "foreground", spec=workload("foreground", 1))
        await self.make(DEPLOYMENTS, "grown", spec=workload("grown", 1))
        await self.settle()
        target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "grown"}
        await self.make(AUTOSCALERS, "grown", spec={"scaleTargetRef": target, "minReplicas": 3, "maxReplicas": 5})
        await self.change(DEPLOYMENTS, "web", {"spec": {"replicas": 4}})
        await self.change(STATEFUL_SETS, "db", {"spec": {"replicas": 1}})
        await self.settle(30)
        await self.change(DEPLOYMENTS, "web", {"spec": {"replicas": 1}})
        await self.settle()
        new = {"spec": {"template": template("web", image="app:2"), "revisionHistoryLimit": 0}}
        await self.change(DEPLOYMENTS, "web", new)
        for name in ("db", "agent"):
            resource = STATEFUL_SETS if name == "db" else DAEMON_SETS
            await self.change(resource, name, {"spec": {"template": template(name, image="app:2")}})
        await self.settle(30)
        await self.drop(DEPLOYMENTS, "foreground", "Foreground")
        await self.drop(STATEFUL_SETS, "db")
        await self.settle()

    async def _jobs(self) -> None:
        short = template("done", notes={"sandbox.kcm.dev/run-time": "1s"}, restartPolicy="Never")
        await self.make(JOBS, "done", spec={"template": short, "completions": 2, "ttlSecondsAfterFinished": 5})
        long = template("late", notes={"sandbox.kcm.dev/run-time": "10h"}, restartPolicy="Never")
        await self.make(JOBS, "late", spec={"template": long, "activeDeadlineSeconds": 5})
        cron = {"schedule": "* * * * *", "successfulJobsHistoryLimit": 0, "jobTemplate": {"spec": {"template": short}}}
        await self.make(CRON_JOBS, "cron", spec=cron)
        await self.settle(90)
        await self.drop(CRON_JOBS, "cron")

    async def _pressure(self) -> None:
        await self.make(QUOTAS, "few", "doomed", spec={"hard": {"pods": "1"}})
        await self.settle(3)
        await self.make(REPLICA_SETS, "refused", "doomed", spec=workload("refused", 2))
        await self.make(BUDGETS, "web", spec={"minAvailable": 1, "selector": {"matchLabels": {"app": "web"}}})
        await self.settle()

    async def _drain(self) -> None:
        """What ``kubectl drain n3`` does, of a workload with a budget that lets one pod go at a time."""
        await self.make(DEPLOYMENTS, "moved", spec=workload("moved", 4))
        await self.make(BUDGETS, "moved", spec={"maxUnavailable": 1, "selector": {"matchLabels": {"app": "moved"}}})
        await self.settle()
        await self.change(NODES, "n3", {"spec": {"unschedulable": True}})
        for _ in range(4):
            await self._evict("n3")
            await self.settle()
        await self.change(NODES, "n3", {"spec": {"unschedulable": None}})

    async def _evict(self, node: str) -> None:
        """Evict the pods of a node once, but for those of the DaemonSet. A budget may refuse it."""
        body = await self._client.list_page(PODS, SPACE, field_selector=f"spec.nodeName={node}")
        for pod in map(PODS.decode, read_page(body).items or ()):
            if workload_of(pod.name) != "agent":
                eviction: Doc = {"metadata": {"name": pod.name, "namespace": SPACE}}
                path = PODS.gvr.path(SPACE, pod.name, "eviction")
                doc = {"apiVersion": "policy/v1", "kind": "Eviction", **eviction}
                headers = {"content-type": "application/json"}
                with suppress(TooManyRequests):
                    await self._client.call(Request("POST", path, (), headers, codec.encode(doc)))

    async def _node_falls_silent(self) -> None:
        """Its pods are evicted after the time that they tolerate, and end when the node is back."""
        soon = [
            {"key": f"node.kubernetes.io/{key}", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 5}
            for key in ("not-ready", "unreachable")
        ]
        pods = template("frail", tolerations=soon, nodeSelector={"kubernetes.io/hostname": "n3"})
        await self.make(DEPLOYMENTS, "frail", spec=workload("frail", 1, pods))
        await self.settle()
        await commands.fail(self._client, "n3")
        await self.settle(60)
        await commands.recover(self._client, "n3")
        await self.settle(20)

    async def _nodes_go(self) -> None:
        taint = {"key": "example.com/gone", "value": "x", "effect": "NoExecute"}
        for node in ("n1", "n2", "n3"):  # wherever the pods of a workload are
            await self.change(NODES, node, {"spec": {"taints": [taint]}})
            await self.settle(20)
            await self.change(NODES, node, {"spec": {"taints": None}})
        pod = {"nodeName": "n9", "containers": [{"name": "c", "image": "app:1"}]}
        await self.make(PODS, "lost", spec=pod)
        await self.drop(NODES, "n2", grace_s=0)
        await self.settle(100)

    async def _all_goes(self) -> None:
        owner = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "name": "nobody",
            "uid": "00000000-0000-0000-0000-000000000000",
        }
        await self.make(CONFIG_MAPS, "orphan", metadata={"ownerReferences": [owner]})
        await self.drop(DEPLOYMENTS, "web")
        await self._client.delete(NAMESPACES, "", "doomed")
        await self.settle(30)
