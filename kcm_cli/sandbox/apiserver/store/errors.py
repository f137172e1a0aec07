"""The errors of the store.

StoreError
├── AlreadyExists   create: the key exists
├── NotFound        update, delete: the key does not exist
├── Conflict        update, delete: the object's revision is not the expected one
├── Compacted       watch, scan: the history of the revision is gone
├── NotKept         create, update, delete: the data directory is not writable, in most cases because the disk is full
└── DirectoryInUse  open: another process uses the data directory
"""


class StoreError(Exception):
    """The base class."""


class AlreadyExists(StoreError):
    """The key exists."""


class NotFound(StoreError):
    """The key does not exist."""


class Conflict(StoreError):
    """The object's revision is not the expected one."""

    def __init__(self, expected: int, actual: int) -> None:
        super().__init__(f"expected revision {expected}, found {actual}")


class Compacted(StoreError):
    """The history of a revision is gone. ``oldest``: the oldest revision that has one."""

    def __init__(self, asked: int, oldest: int) -> None:
        super().__init__(f"revision {asked} is compacted, the oldest kept is {oldest}")
        self.asked = asked
        self.oldest = oldest


class NotKept(StoreError):
    """The data directory is not writable. Nothing has changed."""


class DirectoryInUse(StoreError):
    """Another process uses the data directory."""
