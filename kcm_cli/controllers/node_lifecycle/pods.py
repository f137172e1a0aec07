"""Marks a pod of a silent node as not ready.

upstream: pkg/controller/util/node/controller_utils.go#MarkPodsNotReady
"""

from datetime import datetime

from kcm_cli.api.core import PODS, Pod
from kcm_cli.engine.door import Door
from kcm_cli.engine.execute import Recorder
from kcm_cli.machinery.times import format_time
from kcm_cli.planning.actions import STRATEGIC_MERGE, Notice, ref_to
from kcm_cli.planning.pods import is_ready
from kcm_cli.rest.errors import NotFound


async def mark_not_ready(client: Door, recorder: Recorder, pod: Pod, now: datetime) -> None:
    """Set Ready to False (precondition: uid) and say so; a pod that is not ready is left alone."""
    if not is_ready(pod):
        return
    condition = {"type": "Ready", "status": "False", "lastTransitionTime": format_time(now)}
    body = {"metadata": {"uid": pod.uid}, "status": {"conditions": [condition]}}
    try:
        await client.patch(
            PODS, pod.namespace, pod.name, dict(body), content_type=STRATEGIC_MERGE, subresource="status"
        )
    except NotFound:
        return
    recorder.emit(Notice(ref_to(PODS, pod), "Warning", "NodeNotReady", "Node is not ready"))
