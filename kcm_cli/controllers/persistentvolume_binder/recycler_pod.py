"""The pod that empties a volume.

upstream: pkg/volume/plugins.go#NewPersistentVolumeRecyclerPodTemplate, pkg/volume/util/util.go#LoadPodFromFile,
pkg/volume/{hostpath,nfs}#Recycle
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import msgspec

from kcm_cli.api.storage import PersistentVolume
from kcm_cli.controllers.persistentvolume_binder.config import PersistentVolumeBinderConfig
from kcm_cli.engine.descriptor import StartError
from kcm_cli.machinery.codec import Doc
from kcm_cli.planning.volumes.matching import capacity

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


@dataclass(frozen=True, slots=True)
class RecyclerPod:
    """A pod to create, and where."""

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
    """What a template has to have; its first volume is replaced by the one to recycle."""

    api_version: Literal["v1"]
    kind: Literal["Pod"]
    metadata: _Metadata
    spec: _Spec


@dataclass(frozen=True, slots=True)
class _Template:
    namespace: str
    metadata: Doc
    spec: Doc
    volume: str
    others: list[object]


class RecyclerPods:
    """Makes them from the templates and times of the configuration. Raises StartError for a bad template."""

    def __init__(self, config: PersistentVolumeBinderConfig) -> None:
        self._config = config
        self._nfs = _template("pv-recycler-pod-template-filepath-nfs", config.recycler_pod_template_file_nfs)
        self._host_path = _template(
            "pv-recycler-pod-template-filepath-hostpath", config.recycler_pod_template_file_host_path
        )

    def pod(self, volume: PersistentVolume) -> RecyclerPod:
        """The pod for a volume: the first of its template's volumes becomes this one."""
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

    try:
        doc = yaml.safe_load(Path(path).read_text(encoding="utf-8"))
        pod = msgspec.convert(doc, _Pod)
    except (OSError, UnicodeDecodeError, yaml.YAMLError, msgspec.ValidationError) as error:
        raise StartError(f"--{flag}: {path}: {' '.join(str(error).split())}") from error
    metadata = {key: value for key, value in doc["metadata"].items() if key != "generateName"}
    first, *others = doc["spec"]["volumes"]
    return _Template(pod.metadata.namespace, metadata, doc["spec"], first["name"], others)
