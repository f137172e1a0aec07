"""Keeps the Dangling condition of FlowSchemas: whether their PriorityLevelConfiguration exists.

upstream: apiserver pkg/util/flowcontrol/apf_controller.go#presyncFlowSchemaStatus (v1.36)
"""

import asyncio

from kcm_cli.api.resource import GVR
from kcm_cli.machinery.times import format_time
from kcm_cli.sandbox.apiserver.apply.patching import Applied
from kcm_cli.sandbox.apiserver.registry.core import Core
from kcm_cli.sandbox.apiserver.registry.next_tick import NextTick
from kcm_cli.sandbox.apiserver.store import Event, Stored
from kcm_cli.sandbox.apiserver.types import Tree

FLOW_SCHEMAS = GVR("flowcontrol.apiserver.k8s.io", "v1", "flowschemas")
PRIORITY_LEVELS = GVR("flowcontrol.apiserver.k8s.io", "v1", "prioritylevelconfigurations")
_DANGLING = "Dangling"
_MANAGER = "api-priority-and-fairness-config-consumer-v1"


class FlowSchemaStatus:
    """Updates the condition after each write that may change it."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self._all = NextTick(self._settle_all)
        core.store.subscribe(FLOW_SCHEMAS, self._schema_written)
        core.store.subscribe(PRIORITY_LEVELS, self._level_written)

    def _schema_written(self, event: Event) -> None:
        if event.type != "DELETED":
            asyncio.get_running_loop().call_soon(self._settle, event.stored.name)

    def _level_written(self, event: Event) -> None:
        if event.type != "MODIFIED":
            self._all.ask(event)

    def _settle_all(self) -> None:
        for stored in self._core.store.list(FLOW_SCHEMAS):
            self._settle(stored.name)

    def _settle(self, name: str) -> None:
        # atomic: no await
        core = self._core
        current = core.store.get(FLOW_SCHEMAS, "", name)
        served = core.catalog.by_gvr(FLOW_SCHEMAS)
        if current is None or served is None:
            return
        condition = self._condition(current)
        if not _differs(current.doc, condition):
            return
        wanted: Tree = {"apiVersion": served.info.api_version, "kind": served.info.kind, "metadata": {"name": name}}
        wanted["status"] = {"conditions": [condition]}
        live = current.copy()
        doc = core.patching.apply(served.info, "status", live, Applied(wanted, _MANAGER, force=True), core.clock.now())
        core.store.update(FLOW_SCHEMAS, "", name, doc)

    def _condition(self, current: Stored) -> Tree:
        doc: Tree = current.doc
        level = doc["spec"].get("priorityLevelConfiguration", {}).get("name", "")
        found = self._core.store.get(PRIORITY_LEVELS, "", level) is not None
        text = f'This FlowSchema references the PriorityLevelConfiguration object named "{level}"'
        return {
            "type": _DANGLING,
            "status": "False" if found else "True",
            "lastTransitionTime": format_time(self._core.clock.now()),
            "reason": "Found" if found else "NotFound",
            "message": f"{text} and it exists" if found else f"{text} but there is no such object",
        }


def _differs(doc: Tree, condition: Tree) -> bool:
    """Whether a condition differs from the known one in more than its time."""
    known: list[Tree] = (doc.get("status") or {}).get("conditions") or []
    compared = ("status", "reason", "message")
    return not any(
        one["type"] == _DANGLING and all(one.get(key) == condition[key] for key in compared) for one in known
    )
