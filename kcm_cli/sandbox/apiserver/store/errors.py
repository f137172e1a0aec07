"""Why the store refuses.

StoreError
├── AlreadyExists   create: the key is taken
├── NotFound        update, delete: there is no such key
├── Conflict        update, delete: another revision than the expected one is there
├── Compacted       watch, scan: the revision is no longer kept
├── NotKept         create, update, delete: the data directory takes no writes, for a full disk as a rule
└── DirectoryInUse  open: another process holds the data directory
"""


class StoreError(Exception):
    """Base of the store's refusals."""


class AlreadyExists(StoreError):
    """The key is taken."""


class NotFound(StoreError):
    """There is no such key."""


class Conflict(StoreError):
    """Another revision than the expected one is there."""

    def __init__(self, expected: int, actual: int) -> None:
        super().__init__(f"expected revision {expected}, found {actual}")
        self.expected = expected
        self.actual = actual


class Compacted(StoreError):
    """The revision asked for is older than what is kept; ``oldest`` is the oldest that can be asked for."""

    def __init__(self, asked: int, oldest: int) -> None:
        super().__init__(f"revision {asked} is compacted, the oldest kept is {oldest}")
        self.asked = asked
        self.oldest = oldest


class NotKept(StoreError):
    """The data directory takes no writes; nothing has changed."""


class DirectoryInUse(StoreError):
    """Another process holds the data directory."""
