"""The files that a simple command reads, creates and deletes, as far as they are known."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Protocol, TypeVar

import msgspec

from kcm_cli.sandbox.programs.errors import Refused, TooMuch, Unknown

T = TypeVar("T")
Files = Mapping[str, str | None]
"""Texts of files by their absolute paths; None: its content is unknown. A path that ends in ``/`` is a folder."""


class There(msgspec.Struct, frozen=True):
    """What a program finds when it starts.

    scratch: folders that contain only ``files``. gone: files that were deleted. began: the time; None if it is
    unknown. input: its standard input; None if that is unknown. has_long_input: it is unknown since it is too long.
    has_terminal: it is a terminal, on which a shell can be used.
    """

    files: Files = msgspec.field(default_factory=dict)
    scratch: tuple[str, ...] = ()
    gone: frozenset[str] = frozenset()
    began: datetime | None = None
    input: str | None = None
    has_long_input: bool = False
    has_terminal: bool = False


class Host(Protocol):
    """What a container has from its pod and its node: mounted files, the user, names."""

    @property
    def working_dir(self) -> str:
        """The working directory; empty if it is the image's."""

    @property
    def command(self) -> tuple[str, ...]:
        """The command line of the first process; empty if it is the image's."""

    @property
    def user(self) -> int | None:
        """The user ID; None: the image's."""

    @property
    def group(self) -> int | None:
        """The group ID; None: the image's."""

    @property
    def groups(self) -> tuple[int, ...]:
        """The supplemental groups."""

    @property
    def fqdn(self) -> str:
        """The fully qualified host name."""

    def read(self, path: str) -> bytes:
        """A mounted file. Raises FileNotFoundError, IsADirectoryError, and LookupError if it is unknown."""

    def names(self, path: str) -> Sequence[str]:
        """The names in a mounted folder, sorted. Raises FileNotFoundError, NotADirectoryError, LookupError."""

    def read_only(self, path: str) -> bool:
        """Whether a path is read-only."""

    def mount_point(self, path: str) -> str:
        """The mount point that contains a path; empty if there is none."""


PER_CHARACTER = 1 / 16
"""The cost of copying a character (see ``Work``)."""


class Work(msgspec.Struct):
    """The cost of a program, as the number of files that it looked at, and the limit. ``shared``: that of all programs
    of which it is one."""

    most: float
    done: float = 0.0
    shared: "Work | None" = None

    def spend(self, work: float) -> None:
        """Add to the cost. Raises TooMuch if it exceeds the limit."""
        self.done += work
        if self.done > self.most:
            raise TooMuch
        if self.shared is not None:
            self.shared.spend(work)


class FileSystem(msgspec.Struct):
    """The files while a program runs. Paths are absolute.

    texts, scratch, gone: as in ``There``. The program changes texts and gone.
    """

    texts: dict[str, str | None]
    scratch: tuple[str, ...]
    gone: set[str]
    volumes: Host | None
    work: Work

    def now(self) -> tuple[Files, frozenset[str]]:
        """Return the files, and the deleted files."""
        self.work.spend(len(self.texts) + len(self.gone))
        return dict(self.texts), frozenset(self.gone)

    def make(self, path: str, text: str | None) -> None:
        """Create a file.

        text: the content, or None if it is unknown.
        """
        self.texts[path] = text
        self.gone.discard(path)

    def remove(self, path: str) -> None:
        self.texts.pop(path, None)
        if not path.endswith("/"):
            self.gone.add(path)

    def writable(self, path: str, shown: str, *, parents: bool = False) -> str:
        """Return the path. Raises Refused if no file can be created there."""
        if self.volumes is not None and path.startswith("/") and self.volumes.read_only(path):
            raise Refused(f"{shown}: Read-only file system")
        if not parents and self.in_scratch(path) and not self.is_folder(path.rpartition("/")[0]):
            raise Refused(f"{shown}: No such file or directory")
        return path

    def content(self, path: str) -> str:
        """Return a file's content. Raises OSError, Unknown."""
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
        """Return the sorted names in a folder. Raises OSError, Unknown."""
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
        written = [] if folder else [path.split("/")[1] for path in self.texts if path.startswith("/")]
        return sorted({*names, *written})

    def below(self, name: str, path: str) -> Iterator[tuple[str, str, bool]]:
        """A file or folder, and all in it: its name, its path, and whether it is a folder. Raises OSError, Unknown."""
        left = [(name, path)]
        while left:
            name, path = left.pop()
            self.work.spend((len(name) + len(path)) * PER_CHARACTER)
            try:
                names = self.names(path)
            except NotADirectoryError:
                yield name, path, False
                continue
            yield name, path, True
            left += ((f"{name.rstrip('/')}/{each}", f"{path.rstrip('/')}/{each}") for each in reversed(names))

    def is_folder(self, path: str) -> bool:
        """Whether this is a folder whose files are all known."""
        path = path.rstrip("/")
        if path in self.scratch:
            return True
        self.work.spend(len(self.texts))
        return self.in_scratch(path) and any(file.startswith(f"{path}/") for file in self.texts)

    def in_scratch(self, path: str) -> bool:
        """Whether all files in the path's folder are known."""
        if not path.startswith(tuple(f"{folder}/" for folder in self.scratch)):
            return False
        return self.volumes is None or self.volumes.mount_point(path) in ("", *self.scratch)

    def lacks_folder(self, path: str) -> bool:
        """Whether it is known that this is no folder."""
        path = path.rstrip("/")
        return path in self.texts or (self.in_scratch(path) and not self.is_folder(path))

    def may_be_there(self, path: str) -> bool:
        """Whether there may be a file, where an image has no other than those that are known."""
        if path in self.texts:
            return True
        if path in self.gone or self.in_scratch(path) or self.volumes is None:
            return False
        try:
            self.volumes.read(path)
        except FileNotFoundError:
            return False
        except LookupError:
            return bool(self.volumes.mount_point(path))
        except OSError:
            return True
        return True

    def of_volumes(self, look: Callable[[Host], T]) -> T:
        """Look at the mounted files. Raises OSError, Unknown."""
        if self.volumes is None:
            raise Unknown
        try:
            return look(self.volumes)
        except LookupError:
            raise Unknown from None

    def is_there(self, option: str, path: str) -> bool:
        """Whether a file test succeeds: ``-e``, ``-f``, ``-d`` or ``-s``. Raises Unknown."""
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
