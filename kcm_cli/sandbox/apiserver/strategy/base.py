"""The strategy of a kind: how writes are prepared and validated, which warnings they cause, and how deletion works.

A ``Strategy`` is a value made of functions, whose defaults do nothing. The registry calls its methods in upstream's
order:

- create: ``prepare_create``, then ``validate_create``, then ``warn(doc, None)``;
- update: ``prepare_update``, then ``validate_update``, then ``warn(new, old)``;
- ``.../status``: the same with ``_status``; other subresources have strategies of their own (``Kind.subresources``).

``prepare_*`` change the new document in place and may share parts of the old one with it; neither the old document
nor anything shared may be changed in place afterwards.

upstream: apiserver pkg/registry/rest/{create,update,delete}.go, pkg/registry/*/*/strategy.go
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Literal

import msgspec

from kcm_cli.machinery.patches import copy
from kcm_cli.sandbox.apiserver import trees
from kcm_cli.sandbox.apiserver.strategy import pod_fields
from kcm_cli.sandbox.apiserver.strategy.parts import bump_if_spec_changed, keep_metadata
from kcm_cli.sandbox.apiserver.trees import keep
from kcm_cli.sandbox.apiserver.types import ANONYMOUS, Errors, FieldError, TooManyErrors, Tree, User, limited_errors
from kcm_cli.sandbox.apiserver.validation import rules
from kcm_cli.sandbox.apiserver.validation.metadata import (
    NameRule,
    core_finalizers,
    path_segment,
    subdomain,
    validate_common_update,
    validate_meta,
    validate_meta_update,
    validate_plain_meta,
    validate_plain_meta_update,
)


class Context(msgspec.Struct, frozen=True):
    """The parts of a request that strategies write into objects: its user, and the current time (RFC 3339)."""

    now: str = ""
    user: User = ANONYMOUS


NO_CONTEXT = Context()

Change = Callable[[Tree], None]
Stamp = Callable[[Tree, Tree | None, Context], None]
Carry = Callable[[Tree, Tree], None]
Check = Callable[[Tree, Tree | None], Errors]
CheckUpdate = Callable[[Tree, Tree], Errors]
Step = Literal["metadata", "name", "rules", "change"]
Warn = Callable[[Tree, Tree | None], list[str]]
GracePeriod = Callable[[Tree, int | None], int]
Propagation = Literal["Background", "Orphan", "Unsupported"]


def nothing(*given: object) -> None:
    """Change nothing."""


def no_errors(new: Tree, old: Tree | None) -> Errors:
    """Accept anything."""
    return ()


def by(rule: rules.Rule) -> Check:
    """A check of new and of changed objects by rules for the whole object."""
    return lambda new, old: rule(new, "")


def by_spec(rule: rules.Rule) -> Check:
    """The same by rules for the spec."""
    return lambda new, old: rule(new.get("spec") or {}, "spec")


def status_check(rule: rules.Rule, change: CheckUpdate = no_errors) -> CheckUpdate:
    """A check of status updates: changes of metadata, rules for the status, and rules for its change."""
    return lambda new, old: [
        *validate_meta_update(new["metadata"], old["metadata"]),
        *rule(new.get("status") or {}, "status"),
        *change(new, old),
    ]


class Terminating(msgspec.Struct, frozen=True):
    """The beginning of a deletion in two phases.

    mark: marks an object as terminating, in place, with the propagation policy, if the client states one, and the time.
    held: whether a marked object has to stay. Otherwise it is deleted as any other.
    """

    mark: Callable[[Tree, str | None, str], None]
    held: Callable[[Tree], bool]


class Strategy(msgspec.Struct, frozen=True):
    """The rules of one kind (or of one of its subresources).

    namespaced: set from discovery for built-in kinds (see ``registry.core.Kinds``).
    new_status: the status of new objects, whatever the client sends, with fields that are written even if they are
    empty; None if the client's is kept, or ``on_create`` makes it.
    generation: new objects have generation 1, and a change of the spec increments it.
    keeps_status: an update keeps the status.
    status_keeps_metadata: an update of the status keeps labels, annotations and other metadata.
    names: the rule for names, mostly that of DNS subdomains; None for a kind whose ``check`` validates metadata.
    warn, warn_status: warnings for a change that is accepted; ``old`` is None on creation.
    warn_refused: warnings for an update that is refused for these errors.
    gated: paths of fields whose feature gates are off. They are dropped, unless the old object has them.
    template: the path of the pod template, which has such fields, too.
    core_finalizers: whether finalizers without a domain must be standard ones (kinds of the core packages).
    check: the rules for a new object (``old`` is None) and for a changed one.
    check_change: the rules for changes only.
    update_steps: the validation of an update, in upstream's order: the change of the metadata, names and other
    metadata, ``check``, ``check_change``.
    creates_on_update: a PUT of an object that does not exist creates it.
    needs_version_on_update: a PUT without ``resourceVersion`` is refused (422).
    returns_object_on_delete: DELETE returns the object, not a Status.
    lasting: names of objects that are not deleted by name, each with the reason.
    propagation: the default propagation policy of deletions; Unsupported: the garbage collector adds no finalizer.
    empty_counts: an update with an empty list or map, which is not stored, increments the generation each time
    (upstream compares with reflect.DeepEqual).
    on_read: changes an object after validation and admission; upstream makes this change when it reads the object.
    stored: the object with the fields that upstream stores and does not return; changes nothing.
    completes_on_read: whether upstream adds fields to this new object only when it reads it. An update with the object
    as it was returned is then a write.
    terminating: how a deletion begins, for kinds whose objects are deleted later by what clears them.
    kept_dependents: the warning of a deletion that does not say what happens to dependents.
    alike: the part of a new object's JSON that decides whether it is valid: an object without a name that has it in
    common with a valid one is not validated. Empty: each is.
    is_namespace: for admission, an object is in the namespace of its own name.
    grace_period: the grace period of a deletion in seconds (0: none), from the object and the request's
    ``gracePeriodSeconds``; None for kinds without graceful deletion.
    """

    namespaced: bool = True
    new_status: Tree | None = None
    generation: bool = False
    keeps_status: bool = True
    status_keeps_metadata: bool = False
    on_create: Change = nothing
    on_update: Carry = nothing
    on_status: Carry = nothing
    stamp: Stamp = nothing
    stamp_status: Stamp = nothing
    gated: tuple[str, ...] = ()
    template: str = ""
    names: NameRule | None = subdomain
    core_finalizers: bool = True
    check: Check = no_errors
    check_change: CheckUpdate = no_errors
    check_status: CheckUpdate = no_errors
    update_steps: tuple[Step, ...] = ("metadata", "rules", "change")
    warn: Warn = lambda new, old: []
    warn_status: Warn = lambda new, old: []
    warn_refused: Callable[[Tree, Tree, list[FieldError]], list[str]] = lambda new, old, found: []
    completes_on_read: Callable[[Tree], bool] = lambda doc: False
    on_read: Change = nothing
    stored: Callable[[Tree], Tree] = lambda doc: doc
    empty_counts: bool = False
    creates_on_update: bool = False
    needs_version_on_update: bool = False
    returns_object_on_delete: bool = False
    lasting: Mapping[str, str] = MappingProxyType({})
    propagation: Propagation = "Background"
    terminating: Terminating | None = None
    kept_dependents: str = ""
    alike: Callable[[bytes], bytes] = lambda data: b""
    is_namespace: bool = False
    grace_period: GracePeriod | None = None

    def prepare_create(self, doc: Tree, context: Context = NO_CONTEXT) -> None:
        """Prepare a new object, which has a name, ``uid`` and ``creationTimestamp``."""
        self._drop_gated(doc, None)
        if self.new_status is not None:
            doc["status"] = copy(self.new_status)
        if self.generation:
            doc["metadata"]["generation"] = 1
        self.on_create(doc)
        self.stamp(doc, None, context)

    def prepare_update(self, new: Tree, old: Tree, context: Context = NO_CONTEXT) -> None:
        """Keep what an update of the main resource cannot change."""
        keep(new["metadata"], old["metadata"], "generation")
        self._drop_gated(new, old)
        if self.keeps_status:
            keep(new, old, "status")
        self.on_update(new, old)
        if self.generation:
            bump_if_spec_changed(new, old)
        self.stamp(new, old, context)
        _keep_system_fields(new, old)

    def prepare_status(self, new: Tree, old: Tree, context: Context = NO_CONTEXT) -> None:
        """Keep what an update of the status cannot change."""
        keep(new["metadata"], old["metadata"], "generation")
        self._drop_gated(new, old)
        keep(new, old, "spec")
        if self.status_keeps_metadata:
            keep_metadata(new, old)
        self.on_status(new, old)
        self.stamp_status(new, old, context)
        _keep_system_fields(new, old)

    def _drop_gated(self, new: Tree, old: Tree | None) -> None:
        for path in self.gated:
            pod_fields.drop_field(new, old, path)
        if self.template:
            pod_fields.drop_gated_of_template(trees.at(new, self.template), trees.at(old, self.template))

    def validate_create(self, doc: Tree) -> list[FieldError]:
        """The errors of a new object."""
        return _limited(self._create_errors, doc)

    def _create_errors(self, doc: Tree) -> list[FieldError]:
        if self.names is not None:
            return [*self._metadata(doc["metadata"], self.names), *self.check(doc, None)]
        return [*self.check(doc, None)] or [*validate_plain_meta(doc["metadata"], self.namespaced, path_segment)]

    def validate_update(self, new: Tree, old: Tree) -> list[FieldError]:
        """The errors of an update. Those that two layers find are listed twice, as upstream does."""
        return _limited(self._update_errors, new, old)

    def _update_errors(self, new: Tree, old: Tree) -> list[FieldError]:
        meta, known = new["metadata"], old["metadata"]
        changed = [*validate_plain_meta_update(meta, known)]
        found = [*validate_plain_meta(meta, self.namespaced, path_segment), *changed]
        for step in self.update_steps:
            if step == "rules":
                found += self.check(new, old)
            elif step == "change":
                found += self.check_change(new, old)
            elif self.names is not None and step == "name":
                found += self._metadata(meta, self.names)
            elif self.names is not None:
                found += changed
                if self.core_finalizers:
                    found += core_finalizers(meta)
        return found

    def _metadata(self, meta: Tree, rule: NameRule) -> Errors:
        check = validate_meta if self.core_finalizers else validate_plain_meta
        return check(meta, self.namespaced, rule)

    def validate_status(self, new: Tree, old: Tree) -> list[FieldError]:
        """The errors of an update of the status."""
        return _limited(self._status_errors, new, old)

    def _status_errors(self, new: Tree, old: Tree) -> list[FieldError]:
        return [*validate_common_update(new, old, self.namespaced), *self.check_status(new, old)]


def _limited(find: Callable[..., list[FieldError]], *docs: Tree) -> list[FieldError]:
    """The errors; one of them if there are too many."""
    try:
        with limited_errors():
            return find(*docs)
    except TooManyErrors as many:
        return [many.error]


def _keep_system_fields(new: Tree, old: Tree) -> None:
    meta, known = new["metadata"], old["metadata"]
    if not meta.get("uid") and "uid" in known:
        meta["uid"] = known["uid"]
    for field in ("creationTimestamp", "deletionTimestamp"):
        if known.get(field):
            meta[field] = known[field]
    if meta.get("deletionGracePeriodSeconds") is None and "deletionGracePeriodSeconds" in known:
        meta["deletionGracePeriodSeconds"] = known["deletionGracePeriodSeconds"]
