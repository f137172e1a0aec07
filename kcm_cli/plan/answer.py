"""The answer of a plan, as values; encoded as they stand they are the JSON output (docs/plan.md has the schema).

Fields are only ever added within one ``api_version``.
"""

import msgspec

API_VERSION = "plan.kcm.dev/v1"


class Part(msgspec.Struct, frozen=True, rename="camel"):
    """Base of the answer's parts."""


class Object(Part, frozen=True, order=True):
    """Which object; the namespace is empty for one of the cluster."""

    kind: str
    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind} {self.namespace}/{self.name}" if self.namespace else f"{self.kind} {self.name}"


class Source(Part, frozen=True):
    """The snapshot. taken_at: RFC 3339. torn: kinds that were read at another version than the rest."""

    taken_at: str
    server_version: str
    resource_version: str
    objects: int
    nodes: int
    pods: int
    torn: tuple[str, ...]
    gaps: tuple[tuple[str, str], ...]


class Happening(Part, frozen=True):
    """Something that happens with the change and not, or not so, without it.

    at_s, until_s: seconds after the change, of the first and the last of them. about: the workload or other object.
    what: of pods, ``count`` of them, ``created``, ``pending``, ``ready``, ``unready``, ``terminating``, ``gone``,
    ``failed``, ``succeeded``, ``evicted``; ``blocked`` (an eviction), ``complete``, ``job-failed``, ``stuck``,
    ``refused``, ``begun`` (runs of a CronJob), ``scaled``, ``node``, ``drained``, ``namespace``.
    """

    at_s: float
    until_s: float
    what: str
    about: Object
    count: int
    detail: str


class Field(Part, frozen=True):
    """A field that ends differently; values as JSON, null for none."""

    path: str
    before: object
    after: object


class Difference(Part, frozen=True):
    """An object that ends differently with the change.

    action: ``created``, ``changed``, ``deleted``; ``missing`` for one that is created without the change only, ``kept``
    for one that is deleted without it only; ``replaced`` for a pod that is another one of the same
    name. count: how many of that owner, where names are generated.
    """

    action: str
    about: Object
    owner: str
    count: int
    fields: tuple[Field, ...]


class Problem(Part, frozen=True):
    """Something that is wrong at the end, or was refused on the way.

    kind: ``pending``, ``stuck``, ``pdb``, ``quota``, ``refused``, ``image``, ``failed``, ``drain``. already: it is so
    without the change, too. seeds: in how many runs.
    """

    kind: str
    about: Object
    text: str
    already: bool
    seeds: int


class Fill(Part, frozen=True):
    """What of a node is requested at the end, in percent of what it has to give; before: without the change."""

    node: str
    cpu_before: int
    cpu: int
    memory_before: int
    memory: int
    pods_before: int
    pods: int


class Written(Part, frozen=True):
    """Writes of one client. owner: ``Kind/name`` of what the objects belong to. count: with the change, before:
    without it. refused: those of them that were."""

    controller: str
    verb: str
    resource: str
    owner: str
    count: int
    before: int
    refused: int


class OwnWrite(Part, frozen=True):
    """One write of the takeover audit, with how often it is sent."""

    controller: str
    verb: str
    resource: str
    about: Object
    owner: str
    count: int
    at_s: float
    message: str


class Risk(Part, frozen=True):
    """What goes wrong if something that is assumed does not hold: found in a run of its own, of the first seed."""

    text: str
    problems: tuple[Problem, ...]


class Varies(Part, frozen=True):
    """What is so in some of the runs only."""

    text: str
    seeds: int


class Totals(Part, frozen=True):
    """Pods: made, deleted, evicted, and containers that restart, with the change only."""

    pods_created: int
    pods_deleted: int
    evictions: int
    restarts: int


class Answer(Part, frozen=True):
    """The whole answer.

    changes: what was asked, as text. assumed: what the answer hangs on, and may be wrong; risks: what follows then. For
    an audit ``changes`` is empty, and ``audit`` has every write but Leases, Events and the status of autoscalers,
    whose number is ``routine``.
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

    @property
    def changed(self) -> bool:
        """Whether anything ends differently, or for an audit anything is written."""
        return bool(self.differences or self.audit or any(not one.already for one in self.problems))

    def has(self, kinds: frozenset[str]) -> tuple[Problem, ...]:
        """The problems of these kinds that the change brings."""
        return tuple(one for one in self.problems if one.kind in kinds and (not one.already or not self.changes))

    def json(self) -> bytes:
        """The JSON document, indented, with a newline at the end."""
        return msgspec.json.format(msgspec.json.encode(self), indent=2) + b"\n"
