"""The key that a task syncs: the door logs it as the owner of what is written.

upstream: none
"""

from contextvars import ContextVar

_SYNCING: ContextVar[tuple[str, str]] = ContextVar("syncing", default=("", ""))


def set_syncing(kind: str, key: str) -> None:
    """From now on, this task and those that it starts work for an object of this kind ("" for none) and key."""
    _SYNCING.set((kind, key))


def syncing() -> tuple[str, str]:
    """The kind and key that this task works for; "" for none."""
    return _SYNCING.get()
