"""Marks pods of silent nodes as not ready.

The whole status is updated, as upstream does, but on the pod read from the API server, so that unknown fields stay.

upstream: pkg/controller/util/node/controller_utils.go#MarkPodsNotReady
"""

import logging
from datetime import datetime

from kcm_cli.api.core import PODS, Pod
from kcm_cli.component.logs import V2
from kcm_cli.engine.door import Door
from kcm_cli.engine.execute import Recorder
from kcm_cli.machinery.codec import Doc
from kcm_cli.machinery.documents import nested_list, nested_map, nested_str
from kcm_cli.machinery.kref import kobj
from kcm_cli.machinery.times import format_time
from kcm_cli.planning.actions import Notice, ref_to
from kcm_cli.planning.pods import ready_condition
from kcm_cli.rest.errors import NotFound
from kcm_cli.rest.transport import RequestError

log = logging.getLogger(__name__)


async def mark_not_ready(client: Door, recorder: Recorder, pod: Pod, now: datetime) -> None:
    """Set the Ready condition to False and emit an Event. Pods without the condition, or already not ready, are left
    alone.

    Raises RequestError after emitting the Event; Conflict if the pod has changed.
    """
    known = ready_condition(pod)
    if known is None or known.status == "False":
        return
    failed: RequestError | None = None
    try:
        doc = await client.get_doc(PODS, pod.namespace, pod.name)
        _set_not_ready(doc, pod.metadata.resource_version, format_time(now))
        log.log(V2, "Updating ready status of pod to false", extra={"fields": {"pod": kobj(pod)}})
        reason = f"node {pod.spec.node_name} is not ready"
        await client.update(PODS, pod.namespace, pod.name, doc, subresource="status", reason=reason)
    except NotFound:
        return
    except RequestError as error:
        log.info("Failed to update status for pod", extra={"fields": {"pod": kobj(pod), "err": str(error)}})
        failed = error
    recorder.emit(Notice(ref_to(PODS, pod), "Warning", "NodeNotReady", "Node is not ready"))
    if failed is not None:
        raise failed


def _set_not_ready(doc: Doc, version: str, now: str) -> None:
    """Set the condition. ``version``: the resourceVersion that the decision was based on, as a precondition."""
    nested_map(doc, "metadata")["resourceVersion"] = version
    for condition in nested_list(doc, "status", "conditions"):
        if nested_str(condition, "type") == "Ready":
            condition |= {"status": "False", "lastTransitionTime": now}
