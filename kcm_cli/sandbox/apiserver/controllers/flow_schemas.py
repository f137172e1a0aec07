"""Keeps the Dangling condition of FlowSchemas: whether their PriorityLevelConfiguration exists.

upstream: apiserver pkg/util/flowcontrol/apf_controller.go#presyncFlowSchemaStatus (v1.36)
"""

import asyncio

from kcm_cli.api.resource import GVR
from kcm_cli.machinery.times import format_time
from kcm_cli.sandbox.apiserver.registry.core import Core
from kcm_cli.sandbox.apiserver.store import Event, Stored
from kcm_cli.sandbox.apiserver.store.next_tick import NextTick
from kcm_cli.sandbox.apiserver.trees import condition
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
        current = self._core.store.get(FLOW_SCHEMAS, "", name)
        if current is not None and _differs(current.doc, found := self._condition(current)):
            self._core.own.apply_status(FLOW_SCHEMAS, current, {"conditions": [found]}, _MANAGER)

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


def _differs(doc: Tree, new: Tree) -> bool:
    """Whether a condition differs from the known one in more than its time."""
    known = condition(doc, _DANGLING)
    return known is None or any(known.get(key) != new[key] for key in ("status", "reason", "message"))
