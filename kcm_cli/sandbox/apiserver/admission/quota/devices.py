"""The quota usage of ResourceClaims, including the extended resources of device classes.

upstream: pkg/quota/v1/evaluator/core/resource_claims.go
"""

from datetime import datetime

from kcm_cli.api.core import PODS
from kcm_cli.api.devices import DEVICE_CLASSES, RESOURCE_CLAIMS
from kcm_cli.machinery import codec
from kcm_cli.machinery.meta import Object
from kcm_cli.planning.pod_resources import Amounts
from kcm_cli.planning.quota import devices, pod_usage
from kcm_cli.planning.quota.devices import DeviceClasses
from kcm_cli.sandbox.apiserver.admission.listers import Lister
from kcm_cli.sandbox.apiserver.store import Event, Store
from kcm_cli.sandbox.apiserver.types import Tree


class Devices:
    """The device classes of the cluster, for quotas."""

    def __init__(self, store: Store) -> None:
        self._lister = Lister(store, DEVICE_CLASSES.gvr)
        self._claims = Lister(store, RESOURCE_CLAIMS.gvr)
        self._pods = Lister(store, PODS.gvr)
        self._known: DeviceClasses | None = None
        store.subscribe(DEVICE_CLASSES.gvr, self._changed)

    def covers(self, name: str) -> bool:
        """Whether a quota's resource name counts claims because of a device class."""
        return devices.covers(name, self._classes())

    def with_extended(self, doc: Tree, namespace: str, usage: Amounts, now: datetime) -> Amounts:
        """The usage of a claim, including extended resources that its pod does not account for."""
        claim = RESOURCE_CLAIMS.decode(codec.encode(doc))
        paid: Amounts = {}
        owner = devices.pod_of(claim)
        found = self._pods.get(namespace, owner.name) if owner is not None else None
        if found is not None and devices.pays_for(PODS.decode(codec.encode(found)), claim, self._siblings(claim)):
            paid = pod_usage.usage(found, now)
        return devices.with_extended(usage, self._classes(), paid)

    def _siblings(self, claim: Object) -> list[Object]:
        found = (RESOURCE_CLAIMS.decode(codec.encode(stored.doc)) for stored in self._claims.of(claim.namespace))
        return [each for each in found if devices.by_pod(each) == devices.by_pod(claim)]

    def _classes(self) -> DeviceClasses:
        if self._known is None:
            docs = (stored.doc for stored in self._lister.of())
            self._known = devices.device_classes(DEVICE_CLASSES.decode(codec.encode(doc)) for doc in docs)
        return self._known

    def _changed(self, event: Event) -> None:
        self._known = None
