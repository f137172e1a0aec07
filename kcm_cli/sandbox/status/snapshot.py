"""What the status view shows at one moment, as plain values: two that are equal look the same."""

import msgspec


class NodeCounts(msgspec.Struct, frozen=True):
    """``not_ready``: the names of those, in order."""

    ready: int = 0
    not_ready: tuple[str, ...] = ()


class Queue(msgspec.Struct, frozen=True):
    """A controller's work queue: keys that wait, keys in work, keys done since the start, and retries."""

    name: str
    waiting: int = 0
    in_work: int = 0
    done: int = 0
    retries: int = 0

    @property
    def busy(self) -> int:
        return self.waiting + self.in_work


class EventLine(msgspec.Struct, frozen=True):
    """An Event, or several of one reason. ``time``: of the day; ``about``: as kind/name; ``count``: how many."""

    time: str
    type: str
    namespace: str
    about: str
    reason: str
    message: str
    count: int = 1


class Controllers(msgspec.Struct, frozen=True):
    """The manager's: how many run, and their queues."""

    running: int = 0
    queues: tuple[Queue, ...] = ()


class Snapshot(msgspec.Struct, frozen=True):
    """``pods``: counts by status, most telling first. ``controllers``: None without a manager. ``events``: newest
    last."""

    url: str
    kubeconfig: str
    nodes: NodeCounts = NodeCounts()
    pods: tuple[tuple[str, int], ...] = ()
    controllers: Controllers | None = None
    events: tuple[EventLine, ...] = ()
