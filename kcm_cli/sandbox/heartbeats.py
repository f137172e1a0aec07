"""Renews the Leases of very many nodes in the store directly. As requests, they would be most of an idle sandbox's
work."""

from typing import Any, cast

from kcm_cli.api.resource import GVR
from kcm_cli.api.well_known import LEASE_NAMESPACE
from kcm_cli.machinery.codec import Doc
from kcm_cli.sandbox.apiserver.admission.dynamic.matching import REGISTRATION
from kcm_cli.sandbox.apiserver.server import ApiServer
from kcm_cli.sandbox.apiserver.store import NotKept, Store
from kcm_cli.sandbox.views import NODE_LEASES

_LEASES = NODE_LEASES.gvr
_ADMITTING = tuple(
    GVR(REGISTRATION, "v1", plural)
    for plural in (
        "validatingwebhookconfigurations",
        "mutatingwebhookconfigurations",
        "validatingadmissionpolicies",
        "mutatingadmissionpolicies",
    )
)


class Heartbeats:
    """Does the same as a kubelet's patch of ``spec.renewTime``, if nothing else can see or change the request."""

    def __init__(self, store: Store, api: ApiServer) -> None:
        self._store = store
        self._api = api

    def renew(self, node: str, renew_time: str, now: str) -> bool:
        """Renew a node's Lease. Returns False if a request is necessary instead. ``now``: the time for
        managedFields."""
        stored = self._store.get(_LEASES, LEASE_NAMESPACE, node)
        if stored is None or self._seen():
            return False
        doc = cast("dict[str, Any]", stored.doc)
        meta, spec = doc["metadata"], doc["spec"]
        owners = meta.get("managedFields") or []
        if spec.get("holderIdentity") != node or not _owned_by_kubelet(owners):
            return False
        renewed: Doc = {
            **doc,
            "metadata": {**meta, "managedFields": [{**owners[0], "time": now}]},
            "spec": {**spec, "renewTime": renew_time},
        }
        try:
            self._store.update(_LEASES, LEASE_NAMESPACE, node, renewed, stored.revision, always=True)
        except NotKept:
            return False
        return True

    def _seen(self) -> bool:
        """Whether a recording, fault, webhook or policy may see or change the request."""
        return bool(self._api.interceptors or self._api.faults.all) or any(map(self._store.count, _ADMITTING))


def _owned_by_kubelet(owners: list[Doc]) -> bool:
    return len(owners) == 1 and (owners[0].get("manager"), owners[0].get("operation")) == ("kubelet", "Update")
