"""Runs the pod that scrubs a volume, and copies the pod's Events to the volume.

upstream: pkg/volume/util/recyclerclient/recycler_client.go, pkg/volume/util/util.go#LoadPodFromFile,
pkg/volume/plugins.go#NewPersistentVolumeRecyclerPodTemplate, pkg/volume/{hostpath,nfs}#Recycle
"""

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Literal

import msgspec

from kcm_cli.api.core import PODS, Pod
from kcm_cli.api.resource import GVR, Resource
from kcm_cli.api.storage import PersistentVolume
from kcm_cli.component.volume_config import VolumeConfig
from kcm_cli.engine.descriptor import StartError
from kcm_cli.engine.door import Door
from kcm_cli.machinery.codec import Doc
from kcm_cli.machinery.meta import Object
from kcm_cli.planning.volumes.matching import capacity
from kcm_cli.rest.errors import AlreadyExists, NotFound
from kcm_cli.rest.transport import RequestError
from kcm_cli.runtime.frames import decoder_of
from kcm_cli.runtime.informer import Informer
from kcm_cli.runtime.tasks import Tasks
from kcm_cli.runtime.wire import ADDED, WatchEvent

GI = 1 << 30
EMPTIES = 'test -e /scrub && find /scrub -mindepth 1 -delete && test -z "$(ls -A /scrub)" || exit 1'
USUAL: Doc = {
    "restartPolicy": "Never",
    "volumes": [{"name": "vol"}],
    "containers": [
        {
            "name": "pv-recycler",
            "image": "registry.k8s.io/build-image/debian-base:bookworm-v1.0.6",
            "command": ["/bin/sh"],
            "args": ["-c", EMPTIES],
            "volumeMounts": [{"name": "vol", "mountPath": "/scrub"}],
        }
    ],
}
log = logging.getLogger(__name__)
Emit = Callable[[str, str], None]
"""Called with type and message of each Event about the pod."""


class RecyclerPod(msgspec.Struct, frozen=True):
    """A pod to create."""

    namespace: str
    name: str
    doc: Doc


class _Metadata(msgspec.Struct, frozen=True):
    namespace: Annotated[str, msgspec.Meta(min_length=1)]
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}


class _Named(msgspec.Struct, frozen=True):
    name: str


class _Spec(msgspec.Struct, frozen=True):
    volumes: Annotated[list[_Named], msgspec.Meta(min_length=1)]


class _Pod(msgspec.Struct, frozen=True, rename="camel"):
    """The fields that a template must have. Its first volume is replaced by the one to recycle."""

    api_version: Literal["v1"]
    kind: Literal["Pod"]
    metadata: _Metadata
    spec: _Spec


class _Template(msgspec.Struct, frozen=True):
    namespace: str
    metadata: Doc
    spec: Doc
    volume: str
    others: list[object]


class RecyclerPods:
    """Creates recycler pods from the configured templates and timeouts. Raises StartError for an invalid template."""

    def __init__(self, config: VolumeConfig) -> None:
        self._config = config
        self._nfs = _template("pv-recycler-pod-template-filepath-nfs", config.recycler_pod_template_file_nfs)
        self._host_path = _template(
            "pv-recycler-pod-template-filepath-hostpath", config.recycler_pod_template_file_host_path
        )

    def pod(self, volume: PersistentVolume) -> RecyclerPod:
        """The pod for a volume, which replaces the first volume of the template."""
        config, nfs, host_path = self._config, volume.spec.nfs, volume.spec.host_path
        if nfs is not None:
            template = self._nfs
            minimum_s, per_gi_s = config.recycler_minimum_timeout_nfs_s, config.recycler_increment_timeout_nfs_s
            source: Doc = {"nfs": {"server": nfs.server, "path": nfs.path}}
        else:
            template = self._host_path
            minimum_s = config.recycler_minimum_timeout_host_path_s
            per_gi_s = config.recycler_increment_timeout_host_path_s
            source = {"hostPath": {"path": host_path.path if host_path is not None else ""}}
        deadline_s = max(minimum_s, capacity(volume).value() // GI * per_gi_s)
        name = f"recycler-for-{volume.name}"
        spec: Doc = {
            **template.spec,
            "activeDeadlineSeconds": deadline_s,
            "volumes": [{"name": template.volume, **source}, *template.others],
        }
        doc: Doc = {"apiVersion": "v1", "kind": "Pod", "metadata": {**template.metadata, "name": name}, "spec": spec}
        return RecyclerPod(template.namespace, name, doc)


def _template(flag: str, path: str) -> _Template:
    if not path:
        return _Template("default", {"namespace": "default"}, USUAL, "vol", [])
    import yaml  # not needed by a manager without a template of its own

    from kcm_cli.machinery.yaml_errors import load  # as well

    try:
        doc = load(Path(path).read_text(encoding="utf-8"))
        pod = msgspec.convert(doc, _Pod)
    except (OSError, UnicodeDecodeError, yaml.YAMLError, msgspec.ValidationError) as error:
        raise StartError(f"--{flag}: {path}: {' '.join(str(error).split())}") from error
    metadata = {key: value for key, value in doc["metadata"].items() if key != "generateName"}
    first, *others = doc["spec"]["volumes"]
    return _Template(pod.metadata.namespace, metadata, doc["spec"], first["name"], others)


class PodEvent(Object, frozen=True, gc=False, kw_only=True):
    """The fields of an Event that are copied."""

    type: str = ""
    message: str = ""


EVENTS = Resource(GVR("", "v1", "events"), "Event", PodEvent)


class RecycleError(Exception):
    """The volume was not scrubbed."""


class Recycler:
    """Runs recycler pods."""

    def __init__(self, client: Door, pods: Informer[Pod]) -> None:
        self._client = client
        self._pods = pods

    async def run(self, wanted: RecyclerPod, emit: Emit) -> None:
        """Create the pod, wait until it has ended, and delete it. Raises RecycleError."""
        namespace, name = wanted.namespace, wanted.name
        tasks = Tasks(_not_passed_on)
        tasks.start(f"events of {name}", self._copy_events(namespace, name, emit))
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
        """Create the pod. An existing one of this name is deleted first, and RecycleError is raised."""
        namespace, name = wanted.namespace, wanted.name
        try:
            return await self._client.create(
                PODS.metadata_only, namespace, wanted.doc, reason="released volume is recycled"
            )
        except AlreadyExists:
            try:
                await self._delete(namespace, name)
            except RequestError as error:
                raise RecycleError(f"failed to delete old recycler pod {namespace}/{name}: {error}") from error
            raise RecycleError("old recycler pod found, will retry later") from None
        except RequestError as error:
            raise RecycleError(f"unexpected error creating recycler pod:  {error}") from error

    async def _delete(self, namespace: str, name: str, uid: str = "") -> None:
        with suppress(NotFound):
            await self._client.delete(PODS, namespace, name, uid=uid, reason="recycler has ended")

    async def _ended(self, created: Object) -> str:
        """Wait for the pod's end. Returns the error as text; empty on success."""
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

    async def _copy_events(self, namespace: str, name: str, emit: Emit) -> None:
        """Copy the pod's Events until cancelled, or until the watch ends. Recycling does not depend on this."""
        async with self._client.watch(EVENTS, namespace, field_selector=f"involvedObject.name={name}") as stream:
            decoder = decoder_of(stream.headers, EVENTS)
            async for chunk in stream.chunks:
                for event in decoder.feed(chunk):
                    if isinstance(event, WatchEvent) and event.type == ADDED:
                        emit(event.object.type, event.object.message)


def _not_passed_on(name: str, error: BaseException) -> None:
    log.info("Events of a recycler pod cannot be copied", extra={"fields": {"task": name, "err": str(error)}})
