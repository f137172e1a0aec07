"""Plans: what a controller has decided to write, as values.

A ``Plan`` is a tuple of stages, and a stage is a tuple of actions that do not depend on each other's answers. A new
stage is needed only where an answer decides what follows. ``engine.execute`` executes a plan and returns an
``Outcome``; ``engine.writes.send`` sends a single action.

Every action names its object by ``resource``, ``namespace`` and ``name``, and carries its precondition. Its ``reason``
says in a few words why it was decided ("too few replicas"); the door logs it with the write.
"""

from collections.abc import Mapping
from enum import Enum
from typing import Any

import msgspec

from kcm_cli.api.resource import Resource
from kcm_cli.machinery import codec
from kcm_cli.machinery.codec import Doc
from kcm_cli.machinery.meta import Object


class Absent(Enum):
    """The type of ABSENT: a change with this value removes the field."""

    ABSENT = "absent"


ABSENT = Absent.ABSENT

STRATEGIC_MERGE = "application/strategic-merge-patch+json"
MERGE = "application/merge-patch+json"
JSON_PATCH = "application/json-patch+json"
APPLY = "application/apply-patch+yaml"
"""Content types of patches."""

Path = tuple[str, ...]
Value = object


class EventRef(msgspec.Struct, frozen=True, gc=False):
    """The object that an Event is about (``involvedObject``)."""

    api_version: str
    kind: str
    namespace: str
    name: str
    uid: str
    resource_version: str = ""
    field_path: str = ""


class Notice(msgspec.Struct, frozen=True, gc=False):
    """An Event to emit. ``{name}`` in the message stands for the name of the created object,
    ``{error}`` for the text of the failure."""

    ref: EventRef
    type: str  # Normal or Warning
    reason: str
    message: str


class Remark(msgspec.Struct, frozen=True):
    """A line of the log about a decision. ``fields``: its keys, objects are ``KRef``s."""

    message: str
    fields: Mapping[str, object]
    verbosity: int = 2


class Action(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """One write. ``done`` and ``failed``: the Events to emit after it; ``remark``: logged before it."""

    done: Notice | None = None
    failed: Notice | None = None
    reason: str = ""
    remark: Remark | None = None


class Create(Action, frozen=True, gc=False):
    """Create an object. The body has its name or its generateName.

    ``body``: a document, or its JSON where the same body is sent many times.
    """

    resource: Resource[Any]
    namespace: str
    body: Doc | bytes


class Update(Action, frozen=True, gc=False):
    """Replace the object by its raw document with some fields changed (precondition: its resourceVersion).

    ``changes`` maps paths (``("status", "replicas")``) to new values or ABSENT. ``obj`` must be a view of a kind
    that keeps its raw document.
    """

    resource: Resource[Any]
    obj: Object
    changes: Mapping[Path, Value]
    subresource: str = ""


class Patch(Action, frozen=True, gc=False):
    """Patch an object. The body has metadata.uid or resourceVersion as a precondition where one is needed."""

    resource: Resource[Any]
    namespace: str
    name: str
    body: Doc | list[Doc]
    content_type: str = STRATEGIC_MERGE
    subresource: str = ""


class Apply(Action, frozen=True, gc=False):
    """Server-side apply with force: ``manager`` takes over the fields of the body from other managers."""

    resource: Resource[Any]
    namespace: str
    name: str
    body: Doc
    manager: str
    subresource: str = ""


class Delete(Action, frozen=True, gc=False):
    """Delete an object. ``uid`` and ``resource_version`` are preconditions where not empty."""

    resource: Resource[Any]
    namespace: str
    name: str
    uid: str = ""
    resource_version: str = ""
    propagation: str | None = None


class Mode(Enum):
    """How a stage's actions are sent: one by one, all at once, or 1, 2, 4, … at a time."""

    SEQUENTIAL = "sequential"
    PARALLEL = "parallel"
    SLOW_START = "slow_start"


class Expect(msgspec.Struct, frozen=True):
    """The expectations of a stage: the number of creations, and the deletions (pod keys), of the object with this key
    and uid.

    ``more``: they are added to those of an earlier stage of the plan.
    """

    key: str
    uid: str
    creations: int = 0
    deletions: tuple[str, ...] = ()
    more: bool = False


class Stage(msgspec.Struct, frozen=True):
    """Actions that are sent together. ``remark`` is logged before the first of them.

    ``tolerates``: the number of failures that do not skip the rest. ``anyway``: the stage is executed even after one
    that failed.
    """

    actions: tuple[Action, ...]
    mode: Mode = Mode.PARALLEL
    expect: Expect | None = None
    remark: Remark | None = None
    tolerates: int = 0
    anyway: bool = False


Plan = tuple[Stage, ...]
"""Stages in order. After a failed one, those are skipped that are not executed ``anyway``."""


class Done(msgspec.Struct, frozen=True, gc=False):
    """An action that succeeded. ``result``: the object in the answer, None for deletions."""

    action: Action
    result: Object | None = None


class Failed(msgspec.Struct, frozen=True):
    """An action that failed, with its error."""

    action: Action
    error: Exception


class Outcome(msgspec.Struct, frozen=True):
    """The result of a plan, by action."""

    done: tuple[Done, ...] = ()
    failed: tuple[Failed, ...] = ()
    skipped: tuple[Action, ...] = ()

    @property
    def error(self) -> Exception | None:
        """The first failure."""
        return self.failed[0].error if self.failed else None

    @property
    def unwritten(self) -> tuple[Action, ...]:
        """The actions that failed or were skipped."""
        return (*(failure.action for failure in self.failed), *self.skipped)

    def merge(self, other: "Outcome") -> "Outcome":
        """The outcome of both."""
        return Outcome(self.done + other.done, self.failed + other.failed, self.skipped + other.skipped)


def ref_to(resource: Resource[Any], obj: Object) -> EventRef:
    """The reference by which Events name an object."""
    meta = obj.metadata
    return EventRef(resource.api_version, resource.kind, meta.namespace, meta.name, meta.uid, meta.resource_version)


def stages(*parts: Stage | None) -> Plan:
    """The stages that have actions."""
    return tuple(part for part in parts if part is not None and part.actions)


def edited(obj: Object, changes: Mapping[Path, Value]) -> Doc:
    """The raw document of a view with some fields changed. Raises ValueError for a view without one.

    The other fields keep their bytes: kube-apiserver compares those of RawExtensions, and refuses other spellings.
    """
    if obj.raw is None:
        raise ValueError(f"{type(obj).__name__} {obj.key} keeps no raw document: it cannot be written back")
    return changed(codec.decode_paths(obj.raw, changes), changes)


def changed(doc: Doc, changes: Mapping[Path, Value]) -> Doc:
    """A copy of a document with fields set or removed. Parts outside of the changed paths are shared, not copied."""
    result = dict(doc)
    for path, value in changes.items():
        _set(result, path, value, doc)
    return result


def _set(result: Doc, path: Path, value: Value, original: Doc) -> None:
    node: dict[str, object] = result
    source: object = original
    for part in path[:-1]:
        source = source.get(part) if isinstance(source, dict) else None
        child: object = node.get(part)
        if not isinstance(child, dict) and value is ABSENT:
            return
        own: dict[str, object] = child if isinstance(child, dict) else {}
        if own is source:
            own = dict(own)
        node[part] = own
        node = own
    if value is ABSENT:
        node.pop(path[-1], None)
    else:
        node[path[-1]] = value
