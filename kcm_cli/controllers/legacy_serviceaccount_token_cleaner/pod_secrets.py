"""A view of pods with the names of the Secrets that they use.

It is decoded at most once a day. In the shared view, the pods in the cache would have to hold their environment and all
sources of volumes.

upstream: pkg/api/v1/pod/util.go#VisitPodSecretNames
"""

from collections.abc import Iterator

import msgspec

from kcm_cli.api.core import Named
from kcm_cli.api.resource import GVR, Resource
from kcm_cli.machinery.meta import Object, View


class SecretName(View, frozen=True, gc=False):
    secret_name: str = ""


class SecretRef(View, frozen=True, gc=False):
    secret_ref: Named | None = None


class NodePublishSecretRef(View, frozen=True, gc=False):
    node_publish_secret_ref: Named | None = None


class ProjectedSource(View, frozen=True, gc=False):
    secret: Named | None = None


class Projected(View, frozen=True, gc=False):
    sources: tuple[ProjectedSource, ...] = ()


class VolumeSecrets(View, frozen=True, gc=False):
    """The sources of a volume that can name a Secret."""

    azure_file: SecretName | None = None
    secret: SecretName | None = None
    cephfs: SecretRef | None = None
    cinder: SecretRef | None = None
    flex_volume: SecretRef | None = None
    rbd: SecretRef | None = None
    scale_io: SecretRef | None = msgspec.field(default=None, name="scaleIO")
    iscsi: SecretRef | None = None
    storageos: SecretRef | None = None
    csi: NodePublishSecretRef | None = None
    projected: Projected | None = None


class ValueFrom(View, frozen=True, gc=False):
    secret_key_ref: Named | None = None


class EnvVar(View, frozen=True, gc=False):
    value_from: ValueFrom | None = None


class ContainerSecrets(View, frozen=True, gc=False):
    env: tuple[EnvVar, ...] = ()
    env_from: tuple[SecretRef, ...] = ()


class PodSecretsSpec(View, frozen=True, gc=False):
    image_pull_secrets: tuple[Named, ...] = ()
    init_containers: tuple[ContainerSecrets, ...] = ()
    containers: tuple[ContainerSecrets, ...] = ()
    ephemeral_containers: tuple[ContainerSecrets, ...] = ()
    volumes: tuple[VolumeSecrets, ...] = ()


class PodSecrets(Object, frozen=True, gc=False, kw_only=True):
    """The fields of a pod that can name Secrets."""

    spec: PodSecretsSpec = PodSecretsSpec()


POD_SECRETS = Resource(GVR("", "v1", "pods"), "Pod", PodSecrets)


def secrets_of(pod: PodSecrets) -> Iterator[str]:
    """The names of all Secrets that a pod uses."""
    spec = pod.spec
    refs: list[Named | None] = [*spec.image_pull_secrets]
    for container in (*spec.init_containers, *spec.containers, *spec.ephemeral_containers):
        refs += (source.secret_ref for source in container.env_from)
        refs += (env.value_from.secret_key_ref for env in container.env if env.value_from is not None)
    for volume in spec.volumes:
        refs += _refs(volume)
        yield from (source.secret_name for source in (volume.azure_file, volume.secret) if source is not None)
    yield from (ref.name for ref in refs if ref is not None)


def _refs(volume: VolumeSecrets) -> Iterator[Named | None]:
    plain = (volume.cephfs, volume.cinder, volume.flex_volume, volume.rbd, volume.scale_io)
    for source in (*plain, volume.iscsi, volume.storageos):
        yield source.secret_ref if source is not None else None
    yield volume.csi.node_publish_secret_ref if volume.csi is not None else None
    if volume.projected is not None:
        yield from (source.secret for source in volume.projected.sources)
