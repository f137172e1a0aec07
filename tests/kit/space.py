"""The objects of a namespace of its own with nodes of its own: of scenarios and incidents."""

from typing import Any

from kcm_cli.plan import Metric, Target

Tree = dict[str, Any]
POOL = "pool"
SANDBOX = "sandbox.kcm.dev"


class Space:
    """Makes the objects of one scenario."""

    def __init__(self, name: str) -> None:
        self.name = name

    def node(self, number: int) -> str:
        return f"{self.name}-{number}"

    def target(self, kind: str, name: str) -> Target:
        return Target(kind, name, self.name if kind not in ("namespace", "node") else "")

    def doc(self, api: str, kind: str, name: str, spec: Tree | None = None, **more: Any) -> Tree:
        metadata: Tree = {"name": name, "namespace": self.name, **more.pop("metadata", {})}
        doc: Tree = {"apiVersion": api, "kind": kind, "metadata": metadata, **more}
        return doc if spec is None else {**doc, "spec": spec}

    def template(self, app: str, image: str = "app:1", notes: Tree | None = None, **spec: Any) -> Tree:
        cpu = spec.pop("cpu", "100m")
        volumes = spec.pop("mounts", None)
        container: Tree = {"name": "c", "image": image, "resources": {"requests": {"cpu": cpu, "memory": "64Mi"}}}
        if volumes:
            container["volumeMounts"] = volumes
        soon = [
            {"key": f"node.kubernetes.io/{why}", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 15}
            for why in ("not-ready", "unreachable")
        ]
        metadata: Tree = {"labels": {"app": app}}
        if notes:
            metadata["annotations"] = {f"{SANDBOX}/{key}": value for key, value in notes.items()}
        whole = {"containers": [container], "nodeSelector": {POOL: self.name}, "tolerations": soon, **spec}
        return {"metadata": metadata, "spec": whole}

    def deployment(self, name: str, replicas: int, template: Tree | None = None, **spec: Any) -> Tree:
        whole = {"replicas": replicas, "selector": {"matchLabels": {"app": name}}, **spec}
        return self.doc("apps/v1", "Deployment", name, {**whole, "template": template or self.template(name)})

    def stateful_set(self, name: str, replicas: int, template: Tree | None = None, **spec: Any) -> Tree:
        whole = {"replicas": replicas, "serviceName": name, "selector": {"matchLabels": {"app": name}}, **spec}
        return self.doc("apps/v1", "StatefulSet", name, {**whole, "template": template or self.template(name)})

    def daemon_set(self, name: str, **spec: Any) -> Tree:
        whole = {"selector": {"matchLabels": {"app": name}}, "template": self.template(name), **spec}
        return self.doc("apps/v1", "DaemonSet", name, whole)

    def job(self, name: str, notes: Tree | None = None, **spec: Any) -> Tree:
        template = self.template(name, notes=notes or {"run-time": "3s"}, restartPolicy="Never")
        return self.doc("batch/v1", "Job", name, {**spec, "template": template})

    def cron_job(self, name: str, schedule: str, **spec: Any) -> Tree:
        job = {"template": self.template(name, notes={"run-time": "3s"}, restartPolicy="Never")}
        return self.doc("batch/v1", "CronJob", name, {"schedule": schedule, "jobTemplate": {"spec": job}, **spec})

    def budget(self, name: str, **spec: Any) -> Tree:
        return self.doc("policy/v1", "PodDisruptionBudget", name, {"selector": {"matchLabels": {"app": name}}, **spec})

    def autoscaler(self, name: str, *metrics: Tree, least: int = 2, most: int = 10, **spec: Any) -> Tree:
        target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": name}
        whole = {"scaleTargetRef": target, "minReplicas": least, "maxReplicas": most, "metrics": list(metrics), **spec}
        return self.doc("autoscaling/v2", "HorizontalPodAutoscaler", name, whole)

    def load(self, name: str, percent: float) -> Metric:
        return Metric(self.name, "Deployment", name, "cpu", percent=percent)

    def service(self, name: str, **spec: Any) -> Tree:
        return self.doc("v1", "Service", name, {"selector": {"app": name}, "ports": [{"port": 80}], **spec})
