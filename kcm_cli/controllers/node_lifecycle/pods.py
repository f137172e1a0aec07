"""Marks pods of silent nodes as not ready.

The whole status is updated, as upstream does, but on the pod read from the API server, so that unknown fields stay.

upstream: pkg/controller/util/node/controller_utils.go#MarkPodsNotReady
"""

import asyncio
import logging
from datetime import datetime

from kcm_cli.api.core import PODS, Condition, Node, Pod
from kcm_cli.component.logs import V2
from kcm_cli.controllers.node_lifecycle import plan
from kcm_cli.engine.context import ControllerContext
from kcm_cli.machinery.codec import Doc
from kcm_cli.machinery.documents import nested_list, nested_map, nested_str
from kcm_cli.machinery.kref import kobj
from kcm_cli.machinery.times import format_time
from kcm_cli.planning.actions import Notice, ref_to
from kcm_cli.planning.pods import ready_condition
from kcm_cli.rest.errors import NotFound
from kcm_cli.rest.transport import RequestError
from kcm_cli.runtime.store import NODE, by_node

log = logging.getLogger(__name__)


class PodMarks:
    """Marks the pods of nodes that are not ready."""

    def __init__(self, context: ControllerContext) -> None:
        self._clock, self._client, self._recorder = context.clock, context.client, context.recorder
        self._pods = context.cache(PODS).store
        self._pods.add_index(NODE, by_node)
        self._marked: dict[str, bool] = {}
        """Of nodes that are not ready: whether their pods are marked; False where that failed."""

    def forget(self, name: str) -> None:
        self._marked.pop(name, None)

    async def follow(self, node: Node, ready: Condition, before: Condition | None) -> None:
        """Mark the pods of a silent node (one that does not report itself as not ready) as not ready.

        If that fails for a pod, the next check retries, whatever the node reports by then. Pods are also marked on
        nodes that were silent when this manager started, since the previous one may have ended before it marked them.
        Upstream leaves the pods of a node that reported itself as not ready and then falls silent (kubernetes#112733).
        """
        if ready.status == "True":
            self._marked.pop(node.name, None)
            return
        lost = before is not None and before.status == "True"
        if lost:
            fields = {"status": "NodeNotReady", "node": node.name}
            log.log(V2, "Recording status change event message for node", extra={"fields": fields})
            message = f"Node {node.name} status is now: NodeNotReady"
            self._recorder.emit(plan.node_event(node, "NodeNotReady", message))
        silenced = before is not None and before.status == "False" and ready.status == "Unknown"
        if lost or silenced or not self._marked.setdefault(node.name, ready.status != "Unknown"):
            self._marked[node.name] = False
            log.log(V2, "Update ready status of pods on node", extra={"fields": {"node": kobj(node)}})
            try:
                await self.mark(self._pods.by_index(NODE, node.name))
            except RequestError as error:
                more = {"node": node.name, "err": str(error)}
                text = "Unable to mark all pods NotReady on node; queuing for retry"
                log.error(text, extra={"fields": more})
                return
            self._marked[node.name] = True

    async def mark(self, pods: list[Pod]) -> None:
        now = self._clock.now()
        marking = (self._mark_one(pod, now) for pod in pods)
        for failed in await asyncio.gather(*marking, return_exceptions=True):
            if failed is not None:
                raise failed

    async def _mark_one(self, pod: Pod, now: datetime) -> None:
        """Set the Ready condition to False and emit an Event. Pods without the condition, or already not ready, are
        left alone.

        Raises RequestError after emitting the Event; Conflict if the pod has changed.
        """
        known = ready_condition(pod)
        if known is None or known.status == "False":
            return
        failed: RequestError | None = None
        try:
            doc = await self._client.get_doc(PODS, pod.namespace, pod.name)
            _set_not_ready(doc, pod.metadata.resource_version, format_time(now))
            log.log(V2, "Updating ready status of pod to false", extra={"fields": {"pod": kobj(pod)}})
            reason = f"node {pod.spec.node_name} is not ready"
            await self._client.update(PODS, pod.namespace, pod.name, doc, subresource="status", reason=reason)
        except NotFound:
            return
        except RequestError as error:
            log.info("Failed to update status for pod", extra={"fields": {"pod": kobj(pod), "err": str(error)}})
            failed = error
        self._recorder.emit(Notice(ref_to(PODS, pod), "Warning", "NodeNotReady", "Node is not ready"))
        if failed is not None:
            raise failed


def _set_not_ready(doc: Doc, version: str, now: str) -> None:
    """Set the condition. ``version``: the resourceVersion that the decision was based on, as a precondition."""
    nested_map(doc, "metadata")["resourceVersion"] = version
    for condition in nested_list(doc, "status", "conditions"):
        if nested_str(condition, "type") == "Ready":
            condition |= {"status": "False", "lastTransitionTime": now}
