"""The figures of a manager in this process are those of its /metrics."""

import asyncio

from kcm_cli.component.clock import LoopClock
from kcm_cli.component.metrics.process import ProcessMetrics
from kcm_cli.engine.door import count_writes, write_of
from kcm_cli.manager.observability import Observability
from kcm_cli.rest.transport import Request
from kcm_cli.runtime.workqueue import WorkQueue
from kcm_cli.top import figures
from kcm_cli.top.own import figures_of
from tests.kit.controlling import configured


async def test_they_are_the_same() -> None:
    clock = LoopClock()
    show = Observability(configured(), clock)
    queue = WorkQueue("job", clock, metrics=show.workqueues.queue("job", clock.monotonic))
    for key in ("a", "b", "c"):
        queue.add(key)
    queue.add_after("d", 5.0)
    await asyncio.sleep(2)
    queue.done(await queue.get())
    await queue.get()
    await asyncio.sleep(3)
    count_writes(show.registry)(write_of("job-controller", Request("POST", "/api/v1/namespaces/n/pods")))
    at = clock.monotonic()
    found, read = figures_of(show, at), figures.read(show.registry.expose().decode(), at)
    assert found.queues["job"].waiting == 2 and found.queues["job"].oldest_s == 3.0
    assert found.controllers["job-controller"].writes == {"create": 1}
    assert found.started and found.version
    found.cpu_s, found.memory = read.cpu_s, read.memory  # these change while they are read
    assert found == read
    assert isinstance(show.process, ProcessMetrics)
