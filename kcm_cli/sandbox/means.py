"""What the parts of a cluster that are clients of its API server are made with."""

import random
from collections.abc import Callable

import msgspec

from kcm_cli.component.clock import Clock
from kcm_cli.rest.client import Client
from kcm_cli.runtime.cause_ring import CauseRing
from kcm_cli.runtime.events.counted import EventNames
from kcm_cli.runtime.informers import Informers
from kcm_cli.runtime.workqueue import WorkQueue
from kcm_cli.sandbox.events import Events
from kcm_cli.sandbox.work import Record


class Means(msgspec.Struct, frozen=True, kw_only=True):
    """connect: the client of a component, by its name. kubelet: that of all kubelets, which fills the caches. causes:
    the record of what a part syncs, and why; None for none.
    """

    connect: Callable[[str], Client]
    kubelet: Client
    informers: Informers
    names: EventNames
    events: Events
    clock: Clock
    rng: random.Random
    causes: CauseRing | None = None

    def queue(self, name: str) -> WorkQueue:
        """A queue, which keeps causes if they are recorded."""
        return WorkQueue(name, self.clock, caused=self.causes is not None)

    def record(self, component: str, kind: str) -> Record | None:
        """Where a component records its syncs of objects of a kind."""
        return Record(self.causes, component, kind) if self.causes is not None else None


def split(rng: random.Random) -> random.Random:
    """A source of its own, so that what one part draws changes nothing for the others."""
    return random.Random(rng.random())
