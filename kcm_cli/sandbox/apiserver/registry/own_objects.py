"""Writes of the server itself, without requests."""

from kcm_cli.api.resource import GVR
from kcm_cli.machinery.times import format_time
from kcm_cli.sandbox.apiserver.registry import objects
from kcm_cli.sandbox.apiserver.registry.core import Core
from kcm_cli.sandbox.apiserver.store import Stored
from kcm_cli.sandbox.apiserver.strategy import Context
from kcm_cli.sandbox.apiserver.types import Tree

MANAGER = "kube-apiserver"


def create(core: Core, gvr: GVR, doc: Tree) -> None:
    """Create an object with system metadata, managedFields, and its kind's preparation. atomic: no await."""
    served = core.catalog.by_gvr(gvr)
    assert served is not None
    now = core.clock.now()
    core.patching.track_update(core.patching.place(served.info, ""), None, doc, MANAGER, now)
    objects.fill_system_fields(doc["metadata"], core.random, now)
    core.rules(served.info).prepare_create(doc, Context(format_time(now)))
    core.store.create(gvr, "", doc["metadata"]["name"], objects.ordered(served.info, doc))


def update(core: Core, gvr: GVR, current: Stored, doc: Tree, manager: str) -> None:
    """Update an object with managedFields and its kind's preparation (generation), without validation. ``doc``: a
    changed copy. Raises StoreError if the stored object has changed. atomic: no await.
    """
    served = core.catalog.by_gvr(gvr)
    assert served is not None
    now, old = core.clock.now(), current.doc
    core.patching.track_update(core.patching.place(served.info, ""), old, doc, manager, now)
    core.rules(served.info).prepare_update(doc, old, Context(format_time(now)))
    core.store.update(gvr, current.namespace, current.name, objects.ordered(served.info, doc), current.revision)
