"""Caches that are filled by hand, and a controller's world that reads them."""

import random
from types import SimpleNamespace
from typing import Any

from kcm_cli.api.core import NODES, PERSISTENT_VOLUME_CLAIMS, PODS
from kcm_cli.api.resource import Resource
from kcm_cli.api.storage import PERSISTENT_VOLUMES
from kcm_cli.component.clock import LoopClock
from kcm_cli.component.metrics import Registry
from kcm_cli.controllers.persistentvolume_attach_detach.metrics import AttachDetachMetrics
from kcm_cli.controllers.persistentvolume_attach_detach.plan import MANAGED
from kcm_cli.controllers.persistentvolume_attach_detach.world import World
from kcm_cli.machinery import codec
from kcm_cli.runtime.informers import Informers
from kcm_cli.runtime.workqueue import WorkQueue


class Caches:
    """The caches of a cluster of two nodes on which each pod uses a claim that is bound to a volume."""

    def __init__(self, count: int) -> None:
        self.clock = LoopClock()
        self.informers = Informers(None, self.clock, random.Random(1))  # type: ignore[arg-type]  # nothing is asked for
        for number in range(2):
            self.put(NODES, {"metadata": {"name": f"n{number}", "annotations": {MANAGED: "true"}}})
        for number in range(count):
            self.put(PERSISTENT_VOLUMES, self._volume(number))
            claim = {"metadata": meta(f"c{number}"), "spec": {"volumeName": f"v{number}"}, "status": {"phase": "Bound"}}
            self.put(PERSISTENT_VOLUME_CLAIMS, claim)
            volumes = [{"name": "v", "persistentVolumeClaim": {"claimName": f"c{number}"}}]
            self.put(PODS, {"metadata": meta(f"p{number}"), "spec": {"nodeName": f"n{number % 2}", "volumes": volumes}})

    def _volume(self, number: int) -> dict[str, Any]:
        ref = {"kind": "PersistentVolumeClaim", "namespace": "ns", "name": f"c{number}", "uid": f"c{number}"}
        spec = {"csi": {"driver": "d", "volumeHandle": f"h{number}"}, "claimRef": ref}
        return {"metadata": {"name": f"v{number}", "uid": f"v{number}"}, "spec": spec}

    def put(self, resource: Resource[Any], doc: dict[str, Any]) -> None:
        self.informers.get(resource).store.put(resource.decode(codec.encode(doc)))

    def world(self) -> World:
        context: Any = SimpleNamespace(
            name="c",
            clock=self.clock,
            client=None,
            cache=self.informers.get,
            queues=tuple(WorkQueue("", self.clock) for _ in range(4)),
        )
        return World(context, AttachDetachMetrics(Registry(), context.clock), "")


def meta(name: str) -> dict[str, str]:
    return {"namespace": "ns", "name": name, "uid": name}
