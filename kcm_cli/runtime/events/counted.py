"""Events in the old form as they are written: anew, or as a higher count of one that is there.

upstream: staging/src/k8s.io/client-go/tools/record/event.go
"""

from dataclasses import dataclass

from kcm_cli.api.core import EVENTS, Event
from kcm_cli.component.clock import Clock
from kcm_cli.machinery.codec import Doc
from kcm_cli.planning.actions import EventRef, Notice
from kcm_cli.rest.client import STRATEGIC_MERGE, Client
from kcm_cli.rest.errors import NotFound
from kcm_cli.runtime.events.correlate import Seen


@dataclass(frozen=True, slots=True)
class Source:
    """Who tells. ``host``: the node, where it is a component of one."""

    component: str
    host: str = ""


class EventNames:
    """Names of new Events: ``object.time``. No name comes twice: shared by all writers of a process.

    ``offset_ns``: keeps the names of two processes apart where both live in the same moment, on virtual time.
    """

    def __init__(self, clock: Clock, offset_ns: int = 0) -> None:
        self._clock = clock
        self._offset_ns = offset_ns
        self._last_ns = 0

    def of(self, ref: EventRef) -> str:
        """A name for an Event about this object."""
        now_ns = int(self._clock.now().timestamp() * 1e6) * 1000 + self._offset_ns
        self._last_ns = max(self._last_ns + 1, now_ns)
        return f"{ref.name}.{self._last_ns:x}"


class CountedEvents:
    """Writes through one client."""

    def __init__(self, client: Client, names: EventNames) -> None:
        self._client = client
        self._names = names

    async def write(self, source: Source, notice: Notice, time: str, seen: Seen) -> Seen:
        """The Event as it is now. One that has gone from the server is made again, with its count.

        Raises ApiError, TransportError.
        """
        namespace = notice.ref.namespace or "default"
        if seen.count > 0:
            patch: Doc = {"count": seen.count + 1, "lastTimestamp": time, "message": notice.message}
            try:
                event = await self._client.patch(EVENTS, namespace, seen.name, patch, content_type=STRATEGIC_MERGE)
                return _seen(event, seen.count + 1, seen.first)
            except NotFound:
                pass
        first, count = seen.first or time, seen.count + 1
        body = event_doc(source, notice, self._names.of(notice.ref), first, time, count)
        return _seen(await self._client.create(EVENTS, namespace, body), count, first)


def event_doc(source: Source, notice: Notice, name: str, first: str, last: str, count: int) -> Doc:
    """The Event as it is created."""
    ref = notice.ref
    involved: Doc = {"kind": ref.kind, "name": ref.name, "uid": ref.uid}
    optional = (
        ("apiVersion", ref.api_version),
        ("namespace", ref.namespace),
        ("resourceVersion", ref.resource_version),
        ("fieldPath", ref.field_path),
    )
    involved.update({key: value for key, value in optional if value})
    component, host = source.component, source.host
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": name, "namespace": ref.namespace or "default"},
        "involvedObject": involved,
        "reason": notice.reason,
        "message": notice.message[:1024],
        "source": {"component": component, "host": host} if host else {"component": component},
        "firstTimestamp": first,
        "lastTimestamp": last,
        "count": count,
        "type": notice.type,
        "eventTime": None,
        "reportingComponent": component,
        "reportingInstance": host,
    }


def _seen(event: Event, count: int, first: str) -> Seen:
    return Seen(event.name, event.metadata.resource_version, count, first)
