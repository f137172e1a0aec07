"""Marks a pod of a silent node as not ready.

Not an update of the whole status as upstream's, whose client would drop what it does not know: a patch of the one
condition, with the version as precondition, so that what has been written meanwhile stays.

upstream: pkg/controller/util/node/controller_utils.go#MarkPodsNotReady
"""

from datetime import datetime

from kcm_cli.api.core import PODS, Pod
from kcm_cli.engine.door import Door
from kcm_cli.engine.execute import Recorder
from kcm_cli.machinery.codec import Doc
from kcm_cli.machinery.times import format_time
from kcm_cli.planning.actions import STRATEGIC_MERGE, Notice, ref_to
from kcm_cli.planning.pods import ready_condition
from kcm_cli.rest.errors import NotFound
from kcm_cli.rest.transport import RequestError


async def mark_not_ready(client: Door, recorder: Recorder, pod: Pod, now: datetime) -> None:
    """Set Ready to False and say so; a pod that says nothing of it, or is not ready, is left alone.

    Raises RequestError, with the Event sent; Conflict where the pod has changed since.
    """
    known = ready_condition(pod)
    if known is None or known.status == "False":
        return
    condition = {"type": "Ready", "status": "False", "lastTransitionTime": format_time(now)}
    metadata = {"uid": pod.uid, "resourceVersion": pod.metadata.resource_version}
    body: Doc = {"metadata": metadata, "status": {"conditions": [condition]}}
    failed: RequestError | None = None
    try:
        await client.patch(PODS, pod.namespace, pod.name, body, content_type=STRATEGIC_MERGE, subresource="status")
    except NotFound:
        return
    except RequestError as error:
        failed = error
    recorder.emit(Notice(ref_to(PODS, pod), "Warning", "NodeNotReady", "Node is not ready"))
    if failed is not None:
        raise failed
