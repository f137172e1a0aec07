"""A Deployment ``web`` with an autoscaler, in a whole sandbox on virtual time."""

from contextlib import AbstractAsyncContextManager
from typing import Any

from kcm_cli.api.apps import DEPLOYMENTS
from kcm_cli.api.autoscaling import HORIZONTAL_POD_AUTOSCALERS
from kcm_cli.controllers.deployment.config import DeploymentConfig
from kcm_cli.controllers.horizontal_pod_autoscaler.config import HorizontalPodAutoscalerConfig
from kcm_cli.controllers.replicaset.config import ReplicaSetConfig
from kcm_cli.sandbox.usage.api import MetricsApi
from tests.kit.controlling import controllers
from tests.kit.world import World

NAMES = ("deployment-controller", "replicaset-controller", "horizontal-pod-autoscaler-controller")
CPU = {"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 50}}}
CONFIG = HorizontalPodAutoscalerConfig(cpu_initialization_period_s=0, initial_readiness_delay_s=0)
"""Young pods count at once."""


def container(name: str = "c", cpu: str = "100m") -> dict[str, Any]:
    return {"name": name, "image": "nginx", "resources": {"requests": {"cpu": cpu, "memory": "64Mi"}}}


class Story:
    """What the tests do and ask."""

    def __init__(
        self, world: World, config: HorizontalPodAutoscalerConfig = CONFIG, *, metrics_server: bool = True
    ) -> None:
        self.world = world
        if metrics_server:
            self.install_metrics_server()
        self._configs = (DeploymentConfig(), ReplicaSetConfig(), config)

    def running(self, **options: Any) -> AbstractAsyncContextManager[None]:
        return controllers(self.world, *self._configs, names=NAMES, **options)

    def install_metrics_server(self) -> None:
        self.world.server.api.aggregate(MetricsApi(self.world.server.store, self.world.clock))

    async def deploy(
        self,
        replicas: int = 1,
        *containers: dict[str, Any],
        name: str = "web",
        app: str = "",
        ready_delay: str = "0s",
        **loads: str,
    ) -> None:
        """``loads`` are the figures of simulated pods: ``cpu_total`` for sandbox.kcm.dev/cpu-total, and so on."""
        labels = {"app": app or name}
        own = {"labels": labels, "annotations": _annotations({"ready-delay": ready_delay})}
        template = {"metadata": own, "spec": {"containers": list(containers) or [container()]}}
        spec = {"replicas": replicas, "selector": {"matchLabels": labels}, "template": template}
        metadata = {"name": name, "annotations": _annotations(loads)}
        await self.world.create(DEPLOYMENTS, {"metadata": metadata, "spec": spec})

    async def load(self, **loads: str) -> None:
        await self.world.patch(DEPLOYMENTS, "web", {"metadata": {"annotations": _annotations(loads)}})

    async def autoscale(self, *metrics: dict[str, Any], name: str = "web", **spec: Any) -> None:
        target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
        full = {"scaleTargetRef": target, "minReplicas": 1, "maxReplicas": 10, "metrics": list(metrics) or [CPU]}
        await self.world.create(HORIZONTAL_POD_AUTOSCALERS, {"metadata": {"name": name}, "spec": full | spec})

    async def replicas(self) -> int:
        return int((await self.world.get(DEPLOYMENTS, "web"))["spec"]["replicas"])

    async def followed(self, seconds: int, step: int = 5) -> list[int]:
        """The sizes that the Deployment had in that time, each once in a row."""
        sizes = [await self.replicas()]
        for _ in range(0, seconds, step):
            await self.world.wait(step)
            size = await self.replicas()
            if size != sizes[-1]:
                sizes.append(size)
        return sizes

    async def status(self, name: str = "web") -> dict[str, Any]:
        status: dict[str, Any] = (await self.world.get(HORIZONTAL_POD_AUTOSCALERS, name)).get("status", {})
        return status

    async def condition(self, type_: str, name: str = "web") -> tuple[str, str, str]:
        """Status, reason and message."""
        conditions = (await self.status(name)).get("conditions") or []
        found = next(({"status": "", **c} for c in conditions if c["type"] == type_), {})
        return found.get("status", ""), found.get("reason", ""), found.get("message", "")

    async def current(self) -> list[dict[str, Any]]:
        metrics: list[dict[str, Any]] = (await self.status()).get("currentMetrics") or []
        return metrics

    async def messages(self, reason: str) -> set[str]:
        """The messages of the autoscaler's and the Deployment's events for a reason."""
        return {message for why, message in await self.world.events("web") if why == reason}


def _annotations(loads: dict[str, str]) -> dict[str, str]:
    return {f"sandbox.kcm.dev/{name.replace('_', '-')}": value for name, value in loads.items()}
