"""Runs the pod that empties a volume, to its end, and passes on what is told about it.

upstream: pkg/volume/util/recyclerclient/recycler_client.go
"""

import asyncio
import logging
from collections.abc import Callable

from kcm_cli.api.core import PODS, Pod
from kcm_cli.api.resource import GVR, Resource
from kcm_cli.controllers.persistentvolume_binder.recycler_pod import RecyclerPod
from kcm_cli.engine.door import Door
from kcm_cli.engine.writes import create as create_object
from kcm_cli.machinery.meta import Object
from kcm_cli.planning.actions import Create
from kcm_cli.rest.errors import AlreadyExists, NotFound
from kcm_cli.rest.transport import RequestError
from kcm_cli.runtime.informer import Informer
from kcm_cli.runtime.tasks import Tasks
from kcm_cli.runtime.wire import ADDED, EventDecoder, WatchEvent

log = logging.getLogger(__name__)

Tell = Callable[[str, str], None]
"""Told the type and message of each Event about the pod."""


class ToldEvent(Object, frozen=True, gc=False, kw_only=True):
    """What is passed on of an Event."""

    type: str = ""
    message: str = ""


EVENTS = Resource(GVR("", "v1", "events"), "Event", ToldEvent)


class RecycleError(Exception):
    """The volume was not emptied."""


class Recycler:
    """Recycles one volume after the other, or several at a time."""

    def __init__(self, client: Door, pods: Informer[Pod]) -> None:
        self._client = client
        self._pods = pods

    async def run(self, wanted: RecyclerPod, tell: Tell) -> None:
        """Until the pod has ended and is deleted. Raises RecycleError."""
        namespace, name = wanted.namespace, wanted.name
        tasks = Tasks(_unheard)
        tasks.start(f"events of {name}", self._pass_on(namespace, name, tell))
        try:
            pod = await self._create(wanted)
            problem = await self._ended(pod)
        finally:
            await tasks.stop()
        try:
            await self._delete(namespace, name, pod.uid)
        except RequestError as error:
            if not problem:
                raise RecycleError(f"failed to delete recycler pod: {error}") from error
        if problem:
            raise RecycleError(f"failed to recycle volume: {problem}")

    async def _create(self, wanted: RecyclerPod) -> Object:
        """A pod of that name is left over from a crashed attempt, or unrelated."""
        namespace, name = wanted.namespace, wanted.name
        try:
            return await create_object(self._client, Create(PODS, namespace, wanted.doc))
        except AlreadyExists:
            try:
                await self._delete(namespace, name)
            except RequestError as error:
                raise RecycleError(f"failed to delete old recycler pod {namespace}/{name}: {error}") from error
            raise RecycleError("old recycler pod found, will retry later") from None
        except RequestError as error:
            raise RecycleError(f"unexpected error creating recycler pod:  {error}") from error

    async def _delete(self, namespace: str, name: str, uid: str = "") -> None:
        try:
            await self._client.delete(PODS, namespace, name, uid=uid)
        except NotFound:
            return

    async def _ended(self, created: Object) -> str:
        """Wait for the pod's end; what went wrong, empty if all is well."""
        changed = asyncio.Event()
        listener = self._pods.listen(
            on_add=lambda _: changed.set(), on_update=lambda _, __: changed.set(), on_delete=lambda _: changed.set()
        )
        try:
            while True:
                changed.clear()
                pod = self._pods.store.get(created.key)
                if pod is not None and pod.uid == created.uid:
                    if pod.status.phase == "Succeeded":
                        return ""
                    if pod.status.phase == "Failed":
                        return pod.status.message or "pod failed, pod.Status.Message unknown"
                elif not self._pods.progress.behind(created.version):
                    return "recycler pod was deleted"
                await changed.wait()
        finally:
            self._pods.unlisten(listener)

    async def _pass_on(self, namespace: str, name: str, tell: Tell) -> None:
        """Until cancelled, or until the server ends it: a volume is recycled without that, too."""
        decoder = EventDecoder(EVENTS)
        async with self._client.watch(EVENTS, namespace, field_selector=f"involvedObject.name={name}") as stream:
            async for chunk in stream.chunks:
                for event in decoder.feed(chunk):
                    if isinstance(event, WatchEvent) and event.type == ADDED:
                        tell(event.object.type, event.object.message)


def _unheard(name: str, error: BaseException) -> None:
    log.info("Events of a recycler pod are not passed on", extra={"fields": {"task": name, "err": str(error)}})
