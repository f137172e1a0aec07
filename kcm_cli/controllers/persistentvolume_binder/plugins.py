"""The volume plugins that run in this process, and which of them makes, empties or deletes a volume.

hostPath volumes are made, recycled and deleted, NFS volumes are recycled; everything else is done by provisioners
outside. A plugin that does not exist is an error only where its name says that it is part of Kubernetes.

upstream: pkg/volume/plugins.go, pkg/volume/hostpath, pkg/volume/nfs, cmd/kube-controller-manager/app/plugins.go,
pkg/controller/volume/persistentvolume/pv_controller.go#findProvisionablePlugin, findDeletablePlugin
"""

from kcm_cli.api.storage import PersistentVolume
from kcm_cli.planning.csi_migration import DRIVERS
from kcm_cli.planning.volumes.names import IN_TREE, MIGRATED_TO, PROVISIONED_BY

HOST_PATH = "kubernetes.io/host-path"
NFS = "kubernetes.io/nfs"
_OURS = (HOST_PATH, NFS)
UNKNOWN = "N/A"


class NoPlugin(Exception):
    """There is no plugin that can do it, nor anybody outside."""


def plugin_of(volume: PersistentVolume) -> str:
    """The plugin of a volume's source; empty for none of ours."""
    if volume.spec.host_path is not None:
        return HOST_PATH
    return NFS if volume.spec.nfs is not None else ""


def provisions(provisioner: str) -> str:
    """The plugin that makes volumes for a class; empty if somebody outside does. Raises NoPlugin."""
    if provisioner in DRIVERS:
        return ""
    return _by_name(provisioner, "provisionable")


def deletes(volume: PersistentVolume) -> str:
    """The plugin that deletes a volume; empty if somebody outside does. Raises NoPlugin."""
    provisioner = volume.annotations.get(PROVISIONED_BY)
    if provisioner:
        return _by_name(provisioner, "deletable")
    if MIGRATED_TO in volume.annotations or volume.spec.csi is not None:
        return ""
    plugin = plugin_of(volume)
    if plugin == HOST_PATH:
        return plugin
    kind = "deletable volume" if plugin else "volume"
    raise NoPlugin(f'error getting deleter volume plugin for volume "{volume.name}": no {kind} plugin matched')


def _by_name(name: str, verb: str) -> str:
    if name == HOST_PATH:
        return name
    if not name.startswith(IN_TREE):
        return ""
    if name in _OURS:
        raise NoPlugin(f"no {verb} volume plugin matched")
    raise NoPlugin(f"no volume plugin matched name: {name}")
