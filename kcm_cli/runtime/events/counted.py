"""Writes Events of the old form (core/v1): created, or patched to a higher count.

upstream: staging/src/k8s.io/client-go/tools/record/event.go#recordEvent
"""

import uuid

from kcm_cli.api.core import EVENTS
from kcm_cli.component.clock import Clock
from kcm_cli.machinery.codec import Doc
from kcm_cli.machinery.names import dns1123_subdomain
from kcm_cli.planning.actions import STRATEGIC_MERGE, EventRef
from kcm_cli.rest.client import Client
from kcm_cli.rest.errors import NotFound
from kcm_cli.runtime.events.correlate import Decision, Emitted


class EventNames:
    """Names of new Events: ``object.time``, each given once. Shared by all writers of a process.

    ``offset_ns``: keeps the names of two processes apart on virtual time, where both emit in the same nanosecond.
    """

    def __init__(self, clock: Clock, offset_ns: int = 0) -> None:
        self._clock = clock
        self._offset_ns = offset_ns
        self._last_ns = 0

    def of(self, ref: EventRef) -> str:
        """A name for an Event about this object; a UUID where the object's name makes no valid one."""
        now_ns = int(self._clock.now().timestamp() * 1e6) * 1000 + self._offset_ns
        self._last_ns = max(self._last_ns + 1, now_ns)
        name = f"{ref.name}.{self._last_ns:x}"
        return str(uuid.uuid5(uuid.NAMESPACE_OID, name + ref.uid)) if dns1123_subdomain(name) else name


class CountedEvents:
    """Writes through one client."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def write(self, event: Emitted, decision: Decision) -> None:
        """Create the Event or raise its count. An Event that the server has dropped is created with its count.

        Each call uses the same name, so that repeating a write whose answer was lost makes no second Event. Raises
        RequestError.
        """
        namespace = event.notice.ref.namespace or "default"
        if decision.count > 1:
            patch: Doc = {"count": decision.count, "lastTimestamp": event.time, "message": decision.message}
            try:
                await self._client.patch(EVENTS, namespace, decision.name, patch, content_type=STRATEGIC_MERGE)
                return
            except NotFound:
                pass
        await self._client.create(EVENTS, namespace, event_doc(event, decision))


def event_doc(event: Emitted, decision: Decision) -> Doc:
    """The body of a new Event. A combined Event has no reportingComponent, as upstream."""
    notice, ref = event.notice, event.notice.ref
    involved: Doc = {"kind": ref.kind, "name": ref.name, "uid": ref.uid}
    optional = (
        ("apiVersion", ref.api_version),
        ("namespace", ref.namespace),
        ("resourceVersion", ref.resource_version),
        ("fieldPath", ref.field_path),
    )
    involved.update({key: value for key, value in optional if value})
    component, host = event.source.component, event.source.host
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": decision.name, "namespace": ref.namespace or "default"},
        "involvedObject": involved,
        "reason": notice.reason,
        "message": decision.message,
        "source": {"component": component, "host": host} if host else {"component": component},
        "firstTimestamp": decision.first,
        "lastTimestamp": event.time,
        "count": decision.count,
        "type": notice.type,
        "eventTime": None,
        "reportingComponent": "" if decision.combined else component,
        "reportingInstance": "" if decision.combined else host,
    }
