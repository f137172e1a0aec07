"""The values that the status view shows. Equal snapshots look the same."""

import msgspec


class NodeCounts(msgspec.Struct, frozen=True):
    """``ready``: their number; ``not_ready``: the sorted names of the others."""

    ready: int = 0
    not_ready: tuple[str, ...] = ()


class Queue(msgspec.Struct, frozen=True):
    """A controller's work queue: waiting keys, keys in work, keys done since the start, and retries."""

    name: str
    waiting: int = 0
    in_work: int = 0
    done: int = 0
    retries: int = 0

    @property
    def busy(self) -> int:
        return self.waiting + self.in_work


class EventLine(msgspec.Struct, frozen=True):
    """An Event, or several with one reason. ``time``: HH:MM:SS; ``about``: kind/name; ``count``: their number."""

    time: str
    type: str
    namespace: str
    about: str
    reason: str
    message: str
    count: int = 1


class Controllers(msgspec.Struct, frozen=True):
    """The number of the manager's running controllers, and their queues."""

    running: int = 0
    queues: tuple[Queue, ...] = ()


class Snapshot(msgspec.Struct, frozen=True):
    """``pods``: counts by status, in the order of display. ``controllers``: None without a manager. ``events``: newest
    last."""

    url: str
    kubeconfig: str
    nodes: NodeCounts = NodeCounts()
    pods: tuple[tuple[str, int], ...] = ()
    controllers: Controllers | None = None
    events: tuple[EventLine, ...] = ()
