"""The store of all objects (see ``store.store``)."""

from kcm_cli.sandbox.apiserver.store.errors import (
    AlreadyExists,
    Compacted,
    Conflict,
    DirectoryInUse,
    NotFound,
    NotKept,
    StoreError,
)
from kcm_cli.sandbox.apiserver.store.log import Watcher
from kcm_cli.sandbox.apiserver.store.persistence import SqliteJournal
from kcm_cli.sandbox.apiserver.store.store import Check, Store, StoreContent
from kcm_cli.sandbox.apiserver.store.stored import Event, Stored, frame_of

__all__ = [
    "AlreadyExists",
    "Check",
    "Compacted",
    "Conflict",
    "DirectoryInUse",
    "Event",
    "NotFound",
    "NotKept",
    "StoreContent",
    "SqliteJournal",
    "Store",
    "StoreError",
    "Stored",
    "Watcher",
    "frame_of",
]
