"""Keeps the default ServiceCIDR.

upstream: pkg/controlplane/controller/defaultservicecidr/default_servicecidr_controller.go (v1.36)
"""

import asyncio

from kcm_cli.api.resource import GVR
from kcm_cli.machinery.times import format_time
from kcm_cli.sandbox.apiserver.registry.core import Core
from kcm_cli.sandbox.apiserver.security.bootstrap import service_cidr
from kcm_cli.sandbox.apiserver.store import Event
from kcm_cli.sandbox.apiserver.trees import condition
from kcm_cli.sandbox.apiserver.types import Tree

SERVICE_CIDRS = GVR("networking.k8s.io", "v1", "servicecidrs")
_NAME, _MANAGER = "kubernetes", "kubernetes-service-cidr-controller"
_MESSAGE = "Kubernetes default Service CIDR is ready"


class DefaultRange:
    """Creates the default ServiceCIDR again when it is deleted, and sets its Ready condition."""

    def __init__(self, core: Core) -> None:
        self._core = core
        core.store.subscribe(SERVICE_CIDRS, self._written)
        self._settle()

    def _written(self, event: Event) -> None:
        if event.stored.name == _NAME:
            step = self._make if event.type == "DELETED" else self._settle
            asyncio.get_running_loop().call_soon(step)

    def _make(self) -> None:
        # atomic: no await
        if self._core.store.get(SERVICE_CIDRS, "", _NAME) is None:
            self._core.own.create(SERVICE_CIDRS, dict(service_cidr(self._core.settings.service_ranges)))

    def _settle(self) -> None:
        # atomic: no await
        current = self._core.store.get(SERVICE_CIDRS, "", _NAME)
        if current is None or _has_status(current.doc):
            return
        now = format_time(self._core.clock.now())
        ready = {"type": "Ready", "status": "True", "lastTransitionTime": now, "message": _MESSAGE}
        self._core.own.apply_status(SERVICE_CIDRS, current, {"conditions": [ready]}, _MANAGER)


def _has_status(doc: Tree) -> bool:
    """Whether it is being deleted or has a Ready condition."""
    return bool(doc["metadata"].get("deletionTimestamp")) or condition(doc, "Ready") is not None
