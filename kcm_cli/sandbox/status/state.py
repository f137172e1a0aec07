"""What ``top.cluster`` shows of a sandbox. Equal snapshots look the same."""

import msgspec


class NodeCounts(msgspec.Struct, frozen=True):
    """``ready``: their number; ``not_ready``: the sorted names of the others."""

    ready: int = 0
    not_ready: tuple[str, ...] = ()


class EventLine(msgspec.Struct, frozen=True):
    """An Event, or several with one reason. ``time``: HH:MM:SS; ``about``: kind/name; ``count``: their number."""

    time: str
    type: str
    namespace: str
    about: str
    reason: str
    message: str
    count: int = 1


class Workload(msgspec.Struct, frozen=True):
    """A workload that is not ready: how many of its pods are, and how many are wanted. why: what keeps it, as far as it
    is known."""

    kind: str
    namespace: str
    name: str
    ready: int
    wanted: int
    why: str = ""


class SandboxState(msgspec.Struct, frozen=True):
    """``pods``: counts by status, in the order of display. ``workloads``: those that are not ready, the worst first.
    ``events``: newest last."""

    url: str
    kubeconfig: str
    nodes: NodeCounts = NodeCounts()
    pods: tuple[tuple[str, int], ...] = ()
    workloads: tuple[Workload, ...] = ()
    events: tuple[EventLine, ...] = ()
