"""The pending attach and detach operations, and the backoff of failed ones.

A volume that can be attached to one node only has one operation at a time in the whole cluster; any other volume has
one per node. A failed operation is retried after 0.5 s, doubled with each failure up to 2 min. Other operations on the
volume do not wait for that.

upstream: pkg/volume/util/nestedpendingoperations, pkg/util/goroutinemap/exponentialbackoff
"""

import msgspec

from kcm_cli.component.clock import Clock

ATTACH = "volume_attach"
DETACH = "volume_detach"
FIRST_WAIT_S = 0.5
LONGEST_WAIT_S = 122.0


class Operation(msgspec.Struct):
    """The last operation on a volume (and node). If it is not pending, it has failed."""

    name: str
    pending: bool = True
    wait_s: float = 0.0
    failed_at: float = 0.0


class Operations:
    """The pending and failed operations. upstream: nestedPendingOperations.

    Keys are the unique name of the volume, and the node; the node is empty where operations exclude each other
    cluster-wide.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._operations: dict[str, dict[str, Operation]] = {}

    def pending(self, volume: str, node: str) -> bool:
        """Whether an operation is pending that excludes one on this volume and node."""
        found = self._operations.get(volume)
        if not found:
            return False
        met = (found.get(node), found.get("")) if node else found.values()
        return any(one is not None and one.pending for one in met)

    def wait_s(self, volume: str, node: str, name: str) -> float:
        """The seconds that are left of the operation's backoff."""
        last = self._last(volume, node)
        if last is None or last.name != name:
            return 0.0
        return max(0.0, last.failed_at + last.wait_s - self._clock.monotonic())

    def start(self, volume: str, node: str, name: str) -> None:
        last = self._last(volume, node)
        waited_s = last.wait_s if last is not None and last.name == name else 0.0
        self._operations.setdefault(volume, {})[node] = Operation(name, wait_s=waited_s)

    def end(self, volume: str, node: str, *, failed: bool) -> None:
        operation = self._operations[volume][node]
        if not failed:
            self.forget(volume, node)
            return
        operation.pending = False
        operation.wait_s = min(LONGEST_WAIT_S, 2 * operation.wait_s) if operation.wait_s else FIRST_WAIT_S
        operation.failed_at = self._clock.monotonic()

    def forget(self, volume: str, node: str) -> None:
        """Reset the backoff of a volume and node."""
        found = self._operations.get(volume, {})
        found.pop(node, None)
        if not found:
            self._operations.pop(volume, None)

    def drop(self, volume: str) -> None:
        """Forget the failed operations of a volume."""
        for node, operation in tuple(self._operations.get(volume, {}).items()):
            if not operation.pending:
                self.forget(volume, node)

    def _last(self, volume: str, node: str) -> Operation | None:
        found = self._operations.get(volume, {})
        exact = found.get(node)
        if exact is not None or node:
            return exact or found.get("")
        return next(iter(found.values()), None)
