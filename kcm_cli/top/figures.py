"""The figures of one manager at one time, read from the text of /metrics; and what happened between two of them. Pure.

The queues have the names of upstream's, so that both managers are read the same. A figure that a manager does not have
is None: kube-controller-manager counts neither writes nor turns by controller.
"""

import math
from collections import Counter
from collections.abc import Iterator, Mapping

import msgspec
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Sample

from kcm_cli.machinery.errors import FormatError

FAMILIES = (
    "workqueue_",
    "kcm_controller_",
    "leader_election_master_status",
    "rest_client_requests_total",
    "process_cpu_seconds_total",
    "process_resident_memory_bytes",
    "process_start_time_seconds",
    "kubernetes_build_info",
)
_VERBS = {"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}
MOST_BYTES = 64 << 20
"""A larger answer is no manager's."""


class QueueTotals(msgspec.Struct):
    """A work queue. Totals are since the manager's start; ``oldest_s``: how long the oldest key has been in work."""

    waiting: int = 0
    oldest_s: float = 0.0
    added: float = 0.0
    done: float = 0.0
    retries: float = 0.0
    waited_s: float = 0.0
    waits: float = 0.0
    worked_s: float = 0.0


class ControllerTotals(msgspec.Struct):
    """What kcm counts by controller: writes by verb, and the longest step for which a sync held the event loop."""

    writes: Counter[str] = msgspec.field(default_factory=Counter)
    longest_s: float = 0.0


class Figures(msgspec.Struct):
    """All of it. ``at``: when they were read, in monotonic seconds. ``leads``: None without leader election."""

    at: float
    version: str = ""
    leads: bool | None = None
    cpu_s: float = 0.0
    memory: float = 0.0
    started: float = 0.0
    queues: dict[str, QueueTotals] = msgspec.field(default_factory=dict)
    controllers: dict[str, ControllerTotals] = msgspec.field(default_factory=dict)
    writes: Counter[str] = msgspec.field(default_factory=Counter)
    requests: float = 0.0
    errors: float = 0.0


class Row(msgspec.Struct, frozen=True):
    """A queue, with the figures of the time between two readings as rates per second.

    wait_s: how long a key waited before it was worked on, on average; None if no key was. writes: of its controller,
    None where they are not counted by controller. longest_s: see ``ControllerTotals``.
    """

    queue: str
    controller: str
    waiting: int
    oldest_s: float
    rate: float
    retries: float
    wait_s: float | None
    work_share: float
    done: int
    writes: Mapping[str, float] | None
    longest_s: float | None


class View(msgspec.Struct, frozen=True):
    """What is shown of a manager. Rates are per second; ``cpu``: cores; ``errors``: refused or failed requests."""

    version: str
    leads: bool | None
    uptime_s: float | None
    cpu: float
    memory: int
    requests: float
    errors: float
    writes: Mapping[str, float]
    rows: tuple[Row, ...]


def read(text: str, at: float) -> Figures:
    """The figures in the text of /metrics. Raises FormatError."""
    figures = Figures(at)
    kept = (line for line in text.splitlines() if line.startswith(FAMILIES) and "_bucket{" not in line)
    try:
        for family in text_string_to_metric_families("\n".join(kept)):
            for sample in family.samples:
                take(figures, sample)
    except (ValueError, KeyError, IndexError) as error:
        raise FormatError(f"these are no metrics of a controller manager: {error}") from error
    if not figures.queues:
        raise FormatError("these are no metrics of a controller manager: there is no work queue")
    return figures


def take(figures: Figures, sample: Sample) -> None:
    """Count a sample of one of the FAMILIES; others are left out. Raises ValueError, KeyError for odd ones."""
    name, labels, value = sample.name, sample.labels, float(sample.value)
    if not math.isfinite(value):
        raise ValueError(f"{name} is {value}")
    if name.startswith("workqueue_"):
        _take_queue(figures.queues.setdefault(labels["name"], QueueTotals()), name, value)
    elif name.startswith("kcm_controller_"):
        totals = figures.controllers.setdefault(labels.get("controller", ""), ControllerTotals())
        if name == "kcm_controller_writes_total":
            totals.writes[labels["verb"]] += value  # type: ignore[assignment]  # a Counter may count in floats
        elif name == "kcm_controller_longest_turn_seconds":
            totals.longest_s = value
    elif name == "rest_client_requests_total":
        _take_requests(figures, labels, value)
    elif name == "leader_election_master_status":
        figures.leads = bool(value) or bool(figures.leads)
    elif name == "process_cpu_seconds_total":
        figures.cpu_s = value
    elif name == "process_resident_memory_bytes":
        figures.memory = value
    elif name == "process_start_time_seconds":
        figures.started = value
    elif name == "kubernetes_build_info":
        figures.version = labels.get("git_version", "")


def _take_queue(queue: QueueTotals, name: str, value: float) -> None:
    match name.removeprefix("workqueue_"):
        case "depth":
            queue.waiting = round(value)
        case "adds_total":
            queue.added = value
        case "retries_total":
            queue.retries = value
        case "longest_running_processor_seconds":
            queue.oldest_s = value
        case "queue_duration_seconds_sum":
            queue.waited_s = value
        case "queue_duration_seconds_count":
            queue.waits = value
        case "work_duration_seconds_sum":
            queue.worked_s = value
        case "work_duration_seconds_count":
            queue.done = value


def _take_requests(figures: Figures, labels: Mapping[str, str], value: float) -> None:
    code = labels.get("code", "")
    figures.requests += value
    if not code.startswith(("1", "2", "3")):
        figures.errors += value
    if verb := _VERBS.get(labels.get("method", "")):
        figures.writes[verb] += value  # type: ignore[assignment]  # as above


def between(before: Figures, now: Figures, owners: Mapping[str, str], wall: float) -> View:
    """What happened between two readings. ``owners``: the controller of each queue. ``wall``: the time, in seconds
    since 1970. A manager that was started anew in between counts from its start."""
    if now.started != before.started:
        before = Figures(before.at)
    seconds = max(now.at - before.at, 1e-3)
    return View(
        version=now.version,
        leads=now.leads,
        uptime_s=wall - now.started if now.started else None,
        cpu=_rate(now.cpu_s, before.cpu_s, seconds),
        memory=round(now.memory),
        requests=_rate(now.requests, before.requests, seconds),
        errors=_rate(now.errors, before.errors, seconds),
        writes=_rates(now.writes, before.writes, seconds),
        rows=tuple(_rows(before, now, owners, seconds)),
    )


def _rows(before: Figures, now: Figures, owners: Mapping[str, str], seconds: float) -> Iterator[Row]:
    for name, queue in sorted(now.queues.items()):
        old = before.queues.get(name, QueueTotals())
        waits = queue.waits - old.waits
        controller = owners.get(name, "")
        totals = now.controllers.get(controller)
        earlier = before.controllers.get(controller, ControllerTotals())
        yield Row(
            queue=name,
            controller=controller,
            waiting=queue.waiting,
            oldest_s=queue.oldest_s,
            rate=_rate(queue.done, old.done, seconds),
            retries=_rate(queue.retries, old.retries, seconds),
            wait_s=(queue.waited_s - old.waited_s) / waits if waits > 0 else None,
            work_share=_rate(queue.worked_s, old.worked_s, seconds),
            done=round(queue.done),
            writes=None if totals is None else _rates(totals.writes, earlier.writes, seconds),
            longest_s=None if totals is None else totals.longest_s,
        )


def _rate(now: float, before: float, seconds: float) -> float:
    return max(0.0, now - before) / seconds


def _rates(now: Counter[str], before: Counter[str], seconds: float) -> dict[str, float]:
    return {verb: _rate(count, before[verb], seconds) for verb, count in sorted(now.items())}
