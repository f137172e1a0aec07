"""How many pods of a workload, and endpoints of a Service, were ready over time."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from kcm_cli.plan.answer import Availability, Object
from kcm_cli.plan.losses import Serving
from kcm_cli.plan.observe import OWNERS, PODS, Observer, seen, serves
from kcm_cli.sandbox.apiserver.store import Store

_ENDING = frozenset(("Job", "CronJob", "Pod", "Node"))
"""Pods of these end by intention, or have nothing that replaces them."""


def availability(
    store: Store,
    observer: Observer,
    start: Mapping[Object, Serving],
    end: Mapping[Object, Serving],
    horizon_s: float,
) -> list[Availability]:
    """Of each workload and Service whose ready pods or endpoints changed in number after the change. start, end: what
    Services led to when it was made, and in the end."""
    finals: Counter[Object] = Counter()
    for stored in store.list(PODS):
        pod = seen(stored.data)
        finals[observer.root(pod, "Pod")] += serves(pod)
    found: list[Availability] = []
    for about, steps in observer.ready.items():
        if about.kind not in _ENDING:
            ready = _over_time(steps, finals[about], observer.since_s)
            found += _of(about, ready, min(ready[0][1], observer.least.get(about, ready[0][1])), horizon_s)
    fewer = {one.about: one.before - (0 if _is_deleted(store, one.about) else one.wanted) for one in found}
    for (about, _), steps in _chosen(observer):
        before, final = start.get(about, Serving(0)), end.get(about, Serving(0))
        ready = _over_time(steps, final.ready, observer.since_s)
        found += _of(about, ready, _wanted(ready, before.of, fewer), horizon_s)
    return sorted(found, key=lambda one: one.about)


def _chosen(observer: Observer) -> Iterator[tuple[tuple[Object, str], list[tuple[float, int]]]]:
    """Of a Service with addresses of two types, the first one: both have the same pods."""
    seen_already: set[Object] = set()
    for place in sorted(observer.endpoints):
        if place[0] not in seen_already:
            seen_already.add(place[0])
            yield place, observer.endpoints[place]


def _over_time(steps: Sequence[tuple[float, int]], final: int, since_s: float) -> list[tuple[float, int]]:
    """(seconds after the change, number): before the change, with 0, and then one for each number that there was."""
    after = [(at - since_s, change) for at, change in steps if at >= since_s]
    count = final - sum(change for _, change in after)
    ready, numbers = [(0.0, count)], dict[float, int]()
    for at, change in after:
        count += change
        numbers[at] = count  # the last one of a time
    for at, number in numbers.items():
        if number != ready[-1][1]:
            ready.append((round(at, 3), number))
    return ready


def _is_deleted(store: Store, about: Object) -> bool:
    """Whether a workload is gone, or goes as soon as its pods are."""
    gvr = OWNERS.get(about.kind)
    if gvr is None:
        return False
    stored = store.get(gvr, about.namespace, about.name)
    return stored is None or seen(stored.data).deleting


def _wanted(ready: Sequence[tuple[float, int]], of: Mapping[Object, int], fewer: Mapping[Object, int]) -> int:
    """How many endpoints a Service is to have: as many as before, but for what its workloads were scaled down by, and
    those that were deleted; at least one. That there are fewer in the end may be that pods never came back.

    of: the endpoints that each workload had. fewer: by how many pods each one is to have less.
    """
    before, final = ready[0][1], ready[-1][1]
    left = before - sum(min(count, fewer.get(about, 0)) for about, count in of.items())
    return min(before, max(final, left, 1))


def _of(about: Object, ready: list[tuple[float, int]], wanted: int, horizon_s: float) -> Iterator[Availability]:
    if len(ready) < 2:
        return
    ends = [at for at, _ in ready[1:]] + [horizon_s]
    below_s = sum(max(0.0, end - at) for (at, count), end in zip(ready, ends, strict=True) if count < wanted)
    lowest = min(count for _, count in ready)
    yield Availability(about, ready[0][1], wanted, lowest, round(below_s, 1), tuple(ready))
