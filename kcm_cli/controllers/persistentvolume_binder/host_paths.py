"""Directories of hostPath volumes on this machine: for trying things out on a single node, never for real data.

upstream: pkg/volume/hostpath/host_path.go
"""

import asyncio
import os
import random
import re
import shutil
import uuid

ROOT = "/tmp/hostpath_pv"  # upstream's place
_DELETABLE = re.compile(r"/tmp/.+").fullmatch
"""Not as upstream, where this may stand anywhere in the path."""


class HostPaths:
    """Makes and deletes them, off the loop. Methods raise OSError. ``simulated``: there are none."""

    def __init__(self, rng: random.Random, *, simulated: bool) -> None:
        self._rng = rng
        self._simulated = simulated

    def new(self) -> str:
        """The path for a new volume."""
        return f"{ROOT}/{uuid.UUID(int=self._rng.getrandbits(128), version=4)}"

    async def make(self, path: str) -> None:
        if not self._simulated:
            await asyncio.to_thread(os.makedirs, path, 0o750, True)

    async def delete(self, path: str) -> None:
        """Delete it with all that is in it; one that is not there is fine."""
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
