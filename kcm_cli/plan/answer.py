"""The answer of a plan. Encoded, it is the JSON output, whose schema is in docs/plan.md.

Within one ``api_version``, fields are only added.
"""

from collections.abc import Sequence

import msgspec

from kcm_cli.machinery.meta import OwnerReference
from kcm_cli.plan.kinds import kind_of_owner

API_VERSION, KIND = "plan.kcm.dev/v1", "Plan"


class Part(msgspec.Struct, frozen=True, rename="camel"):
    """The base of the answer's parts."""


class Object(Part, frozen=True, order=True):
    """A reference to an object. The namespace is empty for a cluster-scoped one. kind: with the group if another API
    has a kind of this name (``Service.serving.knative.dev``)."""

    kind: str
    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind} {self.namespace}/{self.name}" if self.namespace else f"{self.kind} {self.name}"


def owner_of(references: Sequence[OwnerReference]) -> str:
    """``Kind/name`` of the controller among these owners, or else of the first; "" if there is none."""
    chosen = next((ref for ref in references if ref.controller), references[0] if references else None)
    return f"{kind_of_owner(chosen)}/{chosen.name}" if chosen is not None else ""


class Source(Part, frozen=True):
    """The snapshot. taken_at: RFC 3339. torn: the kinds that were read at another version than the rest. cluster: the
    uid of the namespace kube-system, which identifies a cluster; "" if it was not read."""

    taken_at: str
    server_version: str
    resource_version: str
    objects: int
    nodes: int
    pods: int
    torn: tuple[str, ...]
    gaps: tuple[tuple[str, str], ...]
    cluster: str = ""


class Happening(Part, frozen=True):
    """Something that happens with the change and does not happen, or not in the same way, without it.

    at_s, until_s: seconds from the change to the first and the last occurrence. about: the workload or other object.
    cause: the controller or client whose request it was. what: for ``count`` pods, ``created``, ``pending``, ``ready``,
    ``unready``, ``terminating``, ``preempted``, ``gone``, ``failed``, ``succeeded``, ``evicted``; otherwise ``blocked``
    (an eviction), ``complete``, ``job-failed``, ``stuck``, ``refused``, ``begun`` (runs of a CronJob), ``scaled``,
    ``node``, ``drained``, ``namespace``.
    """

    at_s: float
    until_s: float
    what: str
    about: Object
    count: int
    detail: str
    cause: str = ""


class Field(Part, frozen=True):
    """A field with another final value. Values are JSON; null if absent."""

    path: str
    before: object
    after: object


class Difference(Part, frozen=True):
    """An object with another final state.

    action: ``created``, ``changed``, ``deleted``; ``missing`` for an object that is created only without the change;
    ``kept`` for one that is deleted only without it; ``replaced`` for another pod with the same name. count: the number
    of the owner's objects, if their names are generated.
    """

    action: str
    about: Object
    owner: str
    count: int
    fields: tuple[Field, ...]


class Problem(Part, frozen=True):
    """Something that is wrong at the end, or was rejected before.

    kind: ``pending``, ``stuck``, ``unavailable``, ``no-endpoints``, ``data``, ``pdb``, ``quota``, ``refused``,
    ``image``, ``failed``, ``drain``. already: it occurs without the change, too, and is no worse with it. seeds: the
    number of runs in which it occurs. elsewhere: it is about an object that the answer does not list otherwise, by its
    namespace or labels.
    """

    kind: str
    about: Object
    text: str
    already: bool
    seeds: int
    elsewhere: bool = False


class Fill(Part, frozen=True):
    """The requests on a node at the end, in percent of its allocatable resources, with the change and before."""

    node: str
    cpu_before: int
    cpu: int
    memory_before: int
    memory: int
    pods_before: int
    pods: int


class Written(Part, frozen=True):
    """The writes of one client. owner: ``Kind/name`` of the objects' owner. count, before: their number with and
    without the change. refused: the number of rejected ones."""

    controller: str
    verb: str
    resource: str
    owner: str
    count: int
    before: int
    refused: int


class OwnWrite(Part, frozen=True):
    """A write of the takeover audit. ``count``: how often it is sent. ``scheduled``: it is regular work of a CronJob or
    an autoscaler, which any manager would do."""

    controller: str
    verb: str
    resource: str
    about: Object
    owner: str
    count: int
    at_s: float
    message: str
    scheduled: bool = False


class Risk(Part, frozen=True):
    """The problems if an assumption does not hold, found in a separate run with the first seed."""

    text: str
    problems: tuple[Problem, ...]


class Varies(Part, frozen=True):
    """A result of some of the runs only."""

    text: str
    seeds: int


class Availability(Part, frozen=True):
    """The ready pods of a workload, or endpoints of a Service, with the change.

    before: their number when it was made. wanted: how many of these should have stayed: fewer only if fewer replicas
    are asked for, or, of a Service, if a workload of it is deleted; a Service should keep at least one. lowest: the
    smallest number; below_s: for how long there were fewer than wanted, in all. ready:
    (seconds after the change, number) for each number that there was.
    """

    about: Object
    before: int
    wanted: int
    lowest: int
    below_s: float
    ready: tuple[tuple[float, int], ...]


class Totals(Part, frozen=True):
    """Created, deleted and evicted pods, and restarts of containers, with the change."""

    pods_created: int
    pods_deleted: int
    evictions: int
    restarts: int


class Answer(Part, frozen=True):
    """The whole answer.

    changes: the requested changes, as text. begins_at: the time of the change in the cluster. assumed: assumptions that
    may be wrong. risks: the problems in that case.
    For an audit ``changes`` is empty, and ``audit`` has all writes except Leases, Events and the status of autoscalers,
    which ``routine`` counts. unlisted: the number of differences that are not in ``differences``, by the namespace or
    the labels that were asked for. availability: of the first run.
    """

    api_version: str
    kind: str
    source: Source
    changes: tuple[str, ...]
    horizon_s: float
    seeds: int
    problems: tuple[Problem, ...]
    assumed: tuple[str, ...]
    risks: tuple[Risk, ...]
    timeline: tuple[Happening, ...]
    differences: tuple[Difference, ...]
    nodes: tuple[Fill, ...]
    writes: tuple[Written, ...]
    audit: tuple[OwnWrite, ...]
    routine: int
    totals: Totals
    varies: tuple[Varies, ...]
    not_modelled: tuple[str, ...]
    begins_at: str = ""
    unlisted: int = 0
    availability: tuple[Availability, ...] = ()

    @property
    def changed(self) -> bool:
        """Whether the final state differs, listed or not, or anything goes wrong that did not before. For an audit,
        whether anything is written but routine and regular work; what is wrong in the cluster is no change."""
        if not self.changes:
            return any(not one.scheduled for one in self.audit)
        return bool(self.differences or self.unlisted or any(not one.already for one in self.problems))

    def has(self, kinds: frozenset[str]) -> tuple[Problem, ...]:
        """The problems of these kinds that the change causes."""
        return tuple(one for one in self.problems if one.kind in kinds and (not one.already or not self.changes))

    def json(self) -> bytes:
        """The JSON document, indented, with a final newline."""
        return msgspec.json.format(msgspec.json.encode(self), indent=2) + b"\n"
