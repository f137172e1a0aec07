"""A view of pods for the selinux-warning-controller, which compares the SELinux labels of pods that share a volume.

It has its own cache: no other controller reads mounts and security contexts, and the controller is off by default.
"""

import msgspec

from kcm_cli.api.core import Container, Pod, PodSpec, Volume
from kcm_cli.api.resource import GVR, Resource
from kcm_cli.api.storage import HostPathSource, NfsSource
from kcm_cli.machinery.meta import View


class SELinuxOptions(View, frozen=True, gc=False):
    user: str = ""
    role: str = ""
    type: str = ""
    level: str = ""


class ContainerSecurity(View, frozen=True, gc=False):
    se_linux_options: SELinuxOptions | None = None


class PodSecurity(View, frozen=True, gc=False):
    se_linux_options: SELinuxOptions | None = None
    se_linux_change_policy: str | None = None


class VolumeMount(View, frozen=True, gc=False):
    name: str = ""


class MountingContainer(Container, frozen=True, gc=False):
    volume_mounts: tuple[VolumeMount, ...] = ()
    security_context: ContainerSecurity | None = None


class MountedVolume(Volume, frozen=True, gc=False):
    host_path: HostPathSource | None = None
    nfs: NfsSource | None = None


class MountingPodSpec(PodSpec, frozen=True, gc=False):
    containers: tuple[MountingContainer, ...] = ()
    init_containers: tuple[MountingContainer, ...] = ()
    ephemeral_containers: tuple[MountingContainer, ...] = ()
    volumes: tuple[MountedVolume, ...] = ()
    security_context: PodSecurity | None = None


class MountingPod(Pod, frozen=True, gc=False, kw_only=True):
    spec: MountingPodSpec = msgspec.field(default_factory=MountingPodSpec)


MOUNTING_PODS = Resource(GVR("", "v1", "pods"), "Pod", MountingPod)
