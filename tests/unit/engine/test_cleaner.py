"""A pass over expired objects."""

import random
from datetime import datetime
from types import SimpleNamespace
from typing import Any

from kcm_cli.api.core import PODS, Pod
from kcm_cli.component.clock import LoopClock
from kcm_cli.engine.passes import Cleaner
from kcm_cli.machinery.meta import ObjectMeta
from kcm_cli.machinery.times import parse_time
from kcm_cli.rest.transport import ConnectionLost
from kcm_cli.runtime.informers import Informers


class Deleting:
    """Notes what is deleted; the answer to one is lost."""

    def __init__(self) -> None:
        self.deleted: list[str] = []

    async def delete(self, resource: Any, namespace: str, name: str, *, reason: str, **preconditions: str) -> None:
        self.deleted.append(name)
        if name == "b":
            raise ConnectionLost("no answer")


async def test_an_object_that_fails_does_not_affect_others() -> None:
    client, clock = Deleting(), LoopClock()
    informers = Informers(None, clock, random.Random(1))  # type: ignore[arg-type]
    context: Any = SimpleNamespace(name="cleaner", client=client, clock=clock, cache=informers.get)

    def is_over(pod: Pod, now: datetime) -> bool:
        return parse_time(pod.metadata.creation_timestamp or "") < now

    for name, created in (("a", "1-01-01T00:00:00Z"), ("b", "0001-01-01T00:00:00Z"), ("c", "2020-01-01T00:00:00Z")):
        informers.get(PODS).store.put(Pod(metadata=ObjectMeta(name=name, creation_timestamp=created)))
    await Cleaner(context, PODS, is_over).clean()
    assert client.deleted == ["b", "c"]
