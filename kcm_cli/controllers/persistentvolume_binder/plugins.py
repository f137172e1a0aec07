"""The volume plugins in this process, and the choice of the plugin that provisions, recycles or deletes a volume.

hostPath volumes are provisioned, recycled and deleted here, NFS volumes are recycled; external provisioners do the
rest. A missing plugin is an error only if its name belongs to Kubernetes.

upstream: pkg/volume/plugins.go, pkg/volume/hostpath, pkg/volume/nfs, cmd/kube-controller-manager/app/plugins.go,
pkg/controller/volume/persistentvolume/pv_controller.go#findProvisionablePlugin, findDeletablePlugin
"""

import asyncio
import os
import random
import re
import shutil
import uuid

from kcm_cli.api.storage import PersistentVolume
from kcm_cli.planning.volumes.migration import DRIVERS
from kcm_cli.planning.volumes.names import IN_TREE, MIGRATED_TO, PROVISIONED_BY

HOST_PATH = "kubernetes.io/host-path"
NFS = "kubernetes.io/nfs"
_OURS = (HOST_PATH, NFS)
UNKNOWN = "N/A"
ROOT = "/tmp/hostpath_pv"  # upstream's place
_DELETABLE = re.compile(r"/tmp/.+").fullmatch
"""Not as upstream, where this may stand anywhere in the path."""


class NoPlugin(Exception):
    """No plugin in this process can do it, and no external provisioner is responsible."""


def plugin_of(volume: PersistentVolume) -> str:
    """The plugin of a volume's source; empty if there is none in this process."""
    if volume.spec.host_path is not None:
        return HOST_PATH
    return NFS if volume.spec.nfs is not None else ""


def provisions(provisioner: str) -> str:
    """The plugin that provisions volumes for a class; empty for an external provisioner. Raises NoPlugin."""
    if provisioner in DRIVERS:
        return ""
    return _by_name(provisioner, "provisionable")


def deletes(volume: PersistentVolume) -> str:
    """The plugin that deletes a volume; empty for an external provisioner. Raises NoPlugin."""
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


class HostPaths:
    """Directories of hostPath volumes on this machine, for development on a single node.

    Directories are created and deleted off the loop. Methods raise OSError. ``simulated``: do not touch the disk.
    """

    def __init__(self, rng: random.Random, *, simulated: bool) -> None:
        self._rng = rng
        self._simulated = simulated

    def new(self) -> str:
        """A path for a new volume."""
        return f"{ROOT}/{uuid.UUID(int=self._rng.getrandbits(128), version=4)}"

    async def make(self, path: str) -> None:
        if not self._simulated:
            await asyncio.to_thread(os.makedirs, path, 0o750, True)

    async def delete(self, path: str) -> None:
        """Delete a directory with its contents, if it exists."""
        if _DELETABLE(path) is None or ".." in path.split("/"):
            raise OSError(f"host_path deleter only supports /tmp/.+ but received provided {path}")
        if not self._simulated:
            await asyncio.to_thread(_remove, path)


def _remove(path: str) -> None:
    try:
        if os.path.isdir(path) and not os.path.islink(path):
            shutil.rmtree(path)
        else:
            os.unlink(path)
    except FileNotFoundError:
        return
