"""What the server does with a kind around a write: prepare, validate, warn, and how it deletes.

A ``Strategy`` is a value put together from functions; what a kind leaves out does nothing. The methods are what the
registry calls, in upstream's order:

- create: ``prepare_create``, then ``validate_create``, then ``warn(doc, None)``;
- update: ``prepare_update``, then ``validate_update``, then ``warn(new, old)``;
- ``.../status``: the same with ``_status``; other subresources have strategies of their own (``for_resource``).

``prepare_*`` change the new document in place and may share parts of the old one with it; neither the old document
nor anything shared may be changed in place afterwards.

upstream: apiserver pkg/registry/rest/{create,update,delete}.go, pkg/registry/*/*/strategy.go
"""

from collections.abc import Callable
from typing import Literal

import msgspec

from kcm_cli.sandbox.apiserver.types import ANONYMOUS, Errors, FieldError, Tree, User
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
    """What of the request goes into objects: who asks, and the time (RFC 3339) that is written as now."""

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
Propagation = Literal["Background", "Orphan"]


def nothing(*given: object) -> None:
    """Change nothing: for a kind without a step."""


def no_errors(new: Tree, old: Tree | None) -> Errors:
    """Accept anything."""
    return ()


def by(rule: rules.Rule) -> Check:
    """A kind that checks new and changed objects alike, by rules for the whole object."""
    return lambda new, old: rule(new, "")


def by_spec(rule: rules.Rule) -> Check:
    """The same by rules for the spec."""
    return lambda new, old: rule(new.get("spec") or {}, "spec")


def status_check(rule: rules.Rule, change: CheckUpdate = no_errors) -> CheckUpdate:
    """A change of the status: that of the metadata, rules for the status, and what holds for the change."""
    return lambda new, old: [
        *validate_meta_update(new["metadata"], old["metadata"]),
        *rule(new.get("status") or {}, "status"),
        *change(new, old),
    ]


class Strategy(msgspec.Struct, frozen=True):
    """The rules of one kind (or of one of its subresources).

    namespaced: filled in from discovery for built-in kinds (see ``kinds.strategy_of``).
    names: how objects are named, most as DNS subdomains; None for a kind that checks its metadata itself.
    warn, warn_status: warnings for the client, where the change is accepted; ``old`` is None on creation.
    warn_refused: those of an update that is refused for these errors.
    core_finalizers: whether finalizers without a domain have to be standard ones (kinds of the core packages).
    check: the kind's rules, for a new object (``old`` is None) and a changed one.
    check_change: what is wrong with a change only.
    update_steps: what an update is checked for, in upstream's order: the change of the metadata, names and other
    metadata, ``check``, ``check_change``.
    creates_on_update: a PUT to a name that is not there creates the object.
    needs_version_on_update: a PUT without ``resourceVersion`` is refused (422).
    returns_object_on_delete: DELETE answers the object, not a Status.
    propagation: what happens to dependents when the request does not say.
    empty_counts: an empty list or map that an update states, and that is not stored, makes a new generation each time
    (upstream compares with reflect.DeepEqual).
    on_read: what an object gets or loses after it was checked and admitted, since upstream does so when it reads it.
    stored: the object with the fields that upstream stores and does not show; changes nothing.
    completes_on_read: whether upstream stores a new object (which is given) less complete than it shows it, so that
    rewriting it as it is shown is a write.
    grace_period: seconds that a deletion waits, from the object and the request's ``gracePeriodSeconds``; ``None``
    for kinds that go at once. Zero means at once.
    """

    namespaced: bool = True
    on_create: Change = nothing
    on_update: Carry = nothing
    on_status: Carry = nothing
    stamp: Stamp = nothing
    stamp_status: Stamp = nothing
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
    propagation: Propagation = "Background"
    grace_period: GracePeriod | None = None

    def prepare_create(self, doc: Tree, context: Context = NO_CONTEXT) -> None:
        """After ``uid`` and ``creationTimestamp`` are set and the name is generated."""
        self.on_create(doc)
        self.stamp(doc, None, context)

    def prepare_update(self, new: Tree, old: Tree, context: Context = NO_CONTEXT) -> None:
        """Keep what an update of the main resource cannot change."""
        _keep_generation(new, old)
        self.on_update(new, old)
        self.stamp(new, old, context)
        _keep_system_fields(new, old)

    def prepare_status(self, new: Tree, old: Tree, context: Context = NO_CONTEXT) -> None:
        """Keep what an update of the status cannot change."""
        _keep_generation(new, old)
        self.on_status(new, old)
        self.stamp_status(new, old, context)
        _keep_system_fields(new, old)

    def validate_create(self, doc: Tree) -> list[FieldError]:
        """What is wrong with a new object."""
        if self.names is not None:
            return [*self._metadata(doc["metadata"], self.names), *self.check(doc, None)]
        return [*self.check(doc, None)] or [*validate_plain_meta(doc["metadata"], self.namespaced, path_segment)]

    def validate_update(self, new: Tree, old: Tree) -> list[FieldError]:
        """What is wrong with a change; errors that two layers find appear twice, as upstream reports them."""
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
        """What is wrong with a change of the status."""
        return [*validate_common_update(new, old, self.namespaced), *self.check_status(new, old)]


def _keep_generation(new: Tree, old: Tree) -> None:
    generation = old["metadata"].get("generation")
    if generation is None:
        new["metadata"].pop("generation", None)
    else:
        new["metadata"]["generation"] = generation


def _keep_system_fields(new: Tree, old: Tree) -> None:
    meta, known = new["metadata"], old["metadata"]
    if not meta.get("uid") and "uid" in known:
        meta["uid"] = known["uid"]
    for field in ("creationTimestamp", "deletionTimestamp"):
        if known.get(field):
            meta[field] = known[field]
    if meta.get("deletionGracePeriodSeconds") is None and "deletionGracePeriodSeconds" in known:
        meta["deletionGracePeriodSeconds"] = known["deletionGracePeriodSeconds"]
