"""The files that a simple command finds, makes and takes away, as far as they are known."""

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol, TypeVar

import msgspec

from kcm_cli.sandbox.nodes.shell import Unknown

T = TypeVar("T")
Files = Mapping[str, str | None]
"""Texts of files by their absolute paths; None: its content is unknown. A path that ends in ``/`` is a folder."""


class There(msgspec.Struct, frozen=True):
    """What a program finds. scratch: folders in which there is nothing but ``files``. gone: files that were taken
    away."""

    files: Files = msgspec.field(default_factory=dict)
    scratch: tuple[str, ...] = ()
    gone: frozenset[str] = frozenset()


class Volumes(Protocol):
    """The files that others have put where the command runs. Paths are absolute."""

    @property
    def working_dir(self) -> str:
        """The folder in which the command runs; empty if it is unknown."""

    @property
    def fqdn(self) -> str:
        """The name of the host, with its domain."""

    @property
    def user(self) -> int | None:
        """As whom the command runs; None: as the image says."""

    @property
    def group(self) -> int | None:
        """As ``user``."""

    @property
    def groups(self) -> Sequence[int]:
        """Those that the pod adds."""

    def read(self, path: str) -> bytes:
        """Raises OSError where there is no such file, LookupError if that is unknown."""

    def names(self, path: str) -> Sequence[str]:
        """What is in a folder, sorted. Raises as ``read``."""

    def read_only(self, path: str) -> bool:
        """Whether nothing can be written there."""

    def mount_point(self, path: str) -> str:
        """The folder that others have put there, in which a path is; empty where there is none."""


class Refused(Exception):
    """A file cannot be written."""


PER_CHARACTER = 1 / 16
"""What a character that is moved costs, in files that are looked at."""


class Work(msgspec.Struct):
    """What a program has cost, as a number of files that it looked at, and what it may cost."""

    most: float
    done: float = 0.0

    def spend(self, work: float) -> None:
        """Raises Unknown where that is too much."""
        self.done += work
        if self.done > self.most:
            raise Unknown


class FileSystem(msgspec.Struct):
    """What there is while a program runs. Paths are absolute.

    texts, scratch, gone: as in ``There``; the first and the last change.
    """

    texts: dict[str, str | None]
    scratch: tuple[str, ...]
    gone: set[str]
    volumes: Volumes | None
    work: Work

    def now(self) -> tuple[Files, frozenset[str]]:
        """The files that there are, and those that are gone."""
        self.work.spend(len(self.texts) + len(self.gone))
        return dict(self.texts), frozenset(self.gone)

    def make(self, path: str, text: str | None) -> None:
        """Put a file there; None: of unknown content."""
        self.texts[path] = text
        self.gone.discard(path)

    def take_away(self, path: str) -> None:
        self.texts.pop(path, None)
        if not path.endswith("/"):
            self.gone.add(path)

    def writable(self, path: str, shown: str, *, parents: bool = False) -> str:
        """The path. Raises Refused where no file can be made."""
        if self.volumes is not None and path.startswith("/") and self.volumes.read_only(path):
            raise Refused(f"{shown}: Read-only file system")
        if not parents and self.in_scratch(path) and not self.is_folder(path.rpartition("/")[0]):
            raise Refused(f"{shown}: No such file or directory")
        return path

    def content(self, path: str) -> str:
        """Raises OSError, Unknown."""
        if path in self.texts:
            text = self.texts[path]
            if text is None:
                raise Unknown
            return text
        if self.is_folder(path):
            raise IsADirectoryError
        if self.in_scratch(path) or path in self.gone:
            raise FileNotFoundError
        return self.of_volumes(lambda volumes: volumes.read(path)).decode("utf-8", "surrogateescape")

    def names(self, folder: str) -> Sequence[str]:
        """Raises OSError, Unknown."""
        if folder in self.texts:
            raise NotADirectoryError
        folder = folder.rstrip("/")
        if self.is_folder(folder):
            self.work.spend(len(self.texts))
            found = {path[len(folder) + 1 :].partition("/")[0] for path in self.texts if path.startswith(f"{folder}/")}
            return sorted(found - {""})
        if self.in_scratch(folder):
            raise FileNotFoundError
        names = self.of_volumes(lambda volumes: volumes.names(folder))
        self.work.spend(len(names))
        return names

    def is_folder(self, path: str) -> bool:
        """Whether it is one of which all files are known."""
        path = path.rstrip("/")
        if path in self.scratch:
            return True
        self.work.spend(len(self.texts))
        return self.in_scratch(path) and any(file.startswith(f"{path}/") for file in self.texts)

    def in_scratch(self, path: str) -> bool:
        """Whether all that is in its folder is known."""
        if not path.startswith(tuple(f"{folder}/" for folder in self.scratch)):
            return False
        return self.volumes is None or self.volumes.mount_point(path) in ("", *self.scratch)

    def of_volumes(self, look: Callable[[Volumes], T]) -> T:
        """What others have put there. Raises OSError, Unknown."""
        if self.volumes is None:
            raise Unknown
        try:
            return look(self.volumes)
        except LookupError:
            raise Unknown from None

    def is_there(self, option: str, path: str) -> bool:
        """Whether a test of a file holds: ``-e``, ``-f``, ``-d`` or ``-s``. Raises Unknown."""
        if path in self.texts:
            return option != "-d" and (option != "-s" or self.texts[path] != "")
        if self.is_folder(path):
            return option != "-f"
        if self.in_scratch(path) or path in self.gone or (option != "-d" and path.startswith("/tmp/")):
            return False
        try:
            found = self.of_volumes(lambda volumes: volumes.read(path))
        except IsADirectoryError:
            return option != "-f"
        except FileNotFoundError:
            return False
        return option != "-d" and (option != "-s" or bool(found))
