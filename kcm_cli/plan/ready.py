"""The ready pods and endpoints beside those that were planned."""

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator

from kcm_cli.api.discovery import SERVICE_NAME
from kcm_cli.machinery.meta import controller_of
from kcm_cli.plan.answer import Availability, Object, Part
from kcm_cli.plan.kinds import kind_of_owner
from kcm_cli.plan.losses import SERVICES
from kcm_cli.plan.observe import OWNED, PODS, SLICES, Seen, endpoints_of, ready_of, seen, serves
from kcm_cli.plan.present import Present
from kcm_cli.plan.steps import DIFFERENTLY, HAPPENED

_COUNTED = {"Deployment": ("Pod", "ReplicaSet"), "Service": ("EndpointSlice", "Service")}
"""The kinds by which the ready ones are counted; of other workloads their pods alone."""


class Ready(Part, frozen=True):
    """Ready pods of a workload, or endpoints of a Service. planned: for this moment; lowest, final: of the whole plan;
    found: now."""

    about: Object
    state: str
    wanted: int
    planned: int
    lowest: int
    final: int
    found: int


def available(planned: Iterable[Availability], now: Present, elapsed_s: float, *, over: bool) -> Iterator[Ready]:
    """What is ready of what was planned to change, as far as it was read. elapsed_s: since the first change; over:
    whether that is more than was planned."""
    ready = _ready_now(now)
    for one in planned:
        counted = (Object(kind, one.about.namespace, "") for kind in _COUNTED.get(one.about.kind, ("Pod",)))
        if any(map(now.unread, counted)):
            continue
        found = ready[one.about]
        at = bisect_right(one.ready, elapsed_s, key=lambda step: step[0]) - 1
        final = one.ready[-1][1] if one.ready else 0
        expected = one.ready[at][1] if one.ready and at >= 0 else one.before
        low = found < one.lowest or (over and found < final)
        state, expected = DIFFERENTLY if low else HAPPENED, final if over else expected
        yield Ready(one.about, state, one.wanted, expected, one.lowest, final, found)


def _ready_now(now: Present) -> Counter[Object]:
    """The Ready pods of each workload, and the ready endpoints of each Service."""
    found: Counter[Object] = Counter()
    for item in now.snapshot.items(PODS):
        pod = seen(item.data)
        if serves(pod):
            found[_root(pod, now)] += 1
    ends: Counter[tuple[Object, str]] = Counter()
    for item in now.snapshot.items(SLICES):
        one = endpoints_of(item.data)
        about = Object("Service", item.namespace, one.labels.get(SERVICE_NAME, ""))
        ends[about, one.address_type] += ready_of(one)
    services = {Object("Service", item.namespace, item.name) for item in now.snapshot.items(SERVICES)}
    for (about, _), count in ends.items():
        if about in services:
            found[about] = max(found[about], count)
    return found


def _root(pod: Seen, now: Present) -> Object:
    """The workload that a pod belongs to."""
    ref = controller_of(pod)
    if ref is None:
        return Object("Pod", pod.namespace, pod.name)
    about = Object(kind_of_owner(ref), pod.namespace, ref.name)
    above = now.owner(about) if about.kind in OWNED and about in now.items else ""
    kind, _, name = above.partition("/")
    return Object(kind, about.namespace, name) if name else about
