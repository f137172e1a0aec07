"""The figures of a manager in this process, without the text of /metrics between."""

from kcm_cli.manager.observability import Observability
from kcm_cli.top.figures import FAMILIES, Figures, QueueTotals, take


def figures_of(show: Observability, at: float) -> Figures:
    """What ``figures.read`` reads of its /metrics. at: monotonic seconds."""
    found = Figures(at)
    for family in show.registry.families():
        for metric in family.collect():
            for sample in metric.samples if metric.name.startswith(FAMILIES) else ():
                take(found, sample)
    for metric in show.process.collect():
        for sample in metric.samples:
            take(found, sample)
    for queue in show.workqueues.queues():
        found.queues[queue.name] = QueueTotals(
            waiting=int(queue.depth.value),
            oldest_s=max(queue.running_s(), default=0.0),
            added=queue.adds.value,
            done=queue.worked.count,
            retries=queue.retries.value,
            waited_s=queue.waited.sum,
            waits=queue.waited.count,
            worked_s=queue.worked.sum,
        )
    return found
