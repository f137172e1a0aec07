"""The files that the containers of a pod share in emptyDirs, and those in folders of their own.

upstream: pkg/volume/emptydir/empty_dir.go
"""

from collections.abc import Iterable, Iterator, Mapping
from posixpath import normpath

from kcm_cli.sandbox.programs.errors import Unknown
from kcm_cli.sandbox.programs.filesystem import Files

Mounted = Mapping[str, tuple[str, str]]
"""Folders of a container, each with its emptyDir (or a name that no volume has, for folders of this run only) and the
path in it, which begins with ``/`` or is empty."""


Left = tuple[tuple[Mounted, Files, frozenset[str]], ...]
"""The files that each command has written and removed in these folders, in order."""


class EmptyDirs:
    """The emptyDirs of one pod, by volume name."""

    def __init__(self) -> None:
        self._made: dict[str, dict[str, str | None]] = {}
        self._gone: dict[str, set[str]] = {}
        self._unknown: set[str] = set()

    def put(self, mounted: Mounted, files: Files, gone: Iterable[str] = ()) -> None:
        """Apply the files that a container created and those that it deleted (``gone``), by their paths in the
        container."""
        for folder, (volume, inside) in mounted.items():
            known = self._volume(volume, inside)
            lost = self._gone.setdefault(volume, set())
            inner = tuple(f"{other}/" for other in mounted if other.startswith(f"{folder}/"))
            for path in _below(folder, gone):
                if not inner or not path.startswith(inner):
                    lost.add(f"{inside}{path[len(folder) :]}")
                    known.pop(f"{inside}{path[len(folder) :]}", None)
            for path in _below(folder, files):
                if not inner or not path.startswith(inner):
                    known[f"{inside}{path[len(folder) :]}"] = files[path]
                    lost.discard(f"{inside}{path[len(folder) :]}")

    def after(self, mounted: Mounted, files: Files, gone: Iterable[str]) -> "EmptyDirs":
        """Return a copy to which these files and deletions are applied, as by ``put``."""
        later = EmptyDirs()
        later._made = {volume: dict(known) for volume, known in self._made.items()}
        later._gone = {volume: set(lost) for volume, lost in self._gone.items()}
        later._unknown = set(self._unknown)
        later.put(mounted, files, gone)
        return later

    def doubt(self, mounted: Mounted) -> None:
        """Note that a container with an unknown command mounts these volumes, so that they may contain other files,
        too."""
        self._unknown.update(volume for volume, _ in mounted.values())

    def known(self, mounted: Mounted) -> tuple[str, ...]:
        """Return the folders of a container whose files are all known: those that ``seen_by`` returns."""
        return tuple(folder for folder, (volume, _) in mounted.items() if volume not in self._unknown)

    def seen_by(self, mounted: Mounted) -> dict[str, str | None]:
        """Return all known files, by their paths in the container."""
        for volume, inside in mounted.values():
            self._volume(volume, inside)
        return {
            f"{folder}{path[len(inside) :]}": text
            for folder, (volume, inside) in mounted.items()
            for path, text in self._made[volume].items()
            if path.startswith(f"{inside}/")
        }

    def gone_by(self, mounted: Mounted) -> frozenset[str]:
        """Return all deleted files, by their paths in the container."""
        return frozenset(
            f"{folder}{path[len(inside) :]}"
            for folder, (volume, inside) in mounted.items()
            for path in self._gone.get(volume, ())
            if path.startswith(f"{inside}/")
        )

    def text(self, volume: str, path: str) -> str:
        """Return the content of a file. Raises FileNotFoundError if there is none, Unknown if it is not known."""
        path = normpath(f"/{path}")
        files = self._made.get(volume, {})
        if path not in files and volume not in self._unknown:
            raise FileNotFoundError
        found = files.get(path)
        if found is None:
            raise Unknown
        return found

    def _volume(self, name: str, inside: str) -> dict[str, str | None]:
        """Return the files of a volume, after creating the mounted folder in it."""
        known = self._made.setdefault(name, {})
        at = inside.find("/", 1) if inside else -1
        while at > 0:
            known.setdefault(inside[: at + 1], "")
            at = inside.find("/", at + 1)
        if inside:
            known.setdefault(f"{inside}/", "")
        return known


def _below(folder: str, files: Iterable[str]) -> Iterator[str]:
    return (path for path in files if path.startswith(f"{folder}/"))
