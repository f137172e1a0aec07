"""The controllers of CustomResourceDefinitions: names, establishing, finalizer.

They run in the loop's next turn after a write to a definition. Names are accepted, then the resource is established and
served. When a definition is deleted, its objects are deleted first.

upstream: apiextensions-apiserver pkg/controller/{status/naming_controller,establish/establishing_controller,
apiapproval/apiapproval_controller,finalizer/crd_finalizer}.go
"""

from collections import Counter, deque
from collections.abc import Callable
from functools import partial
from typing import cast

from kcm_cli.api.resource import GVR
from kcm_cli.machinery.errors import aggregated
from kcm_cli.machinery.patches import copy
from kcm_cli.machinery.quoting import quote
from kcm_cli.machinery.times import format_time
from kcm_cli.runtime.turns import TURN_S, Part
from kcm_cli.sandbox.apiserver.crd.approval import approval, is_protected
from kcm_cli.sandbox.apiserver.crd.definition import (
    APPROVED,
    FINALIZER,
    GROUP,
    PLURAL,
    Definition,
    Use,
    definition_of,
    set_condition,
    uses_of,
)
from kcm_cli.sandbox.apiserver.crd.resources import CustomResources
from kcm_cli.sandbox.apiserver.registry.core import Core
from kcm_cli.sandbox.apiserver.store import Event, Stored
from kcm_cli.sandbox.apiserver.store.next_tick import NextTick
from kcm_cli.sandbox.apiserver.trees import condition, is_true, put
from kcm_cli.sandbox.apiserver.types import Tree
from kcm_cli.sandbox.apiserver.validation.webhook_clients import trusts_nothing

DEFINITIONS = GVR(GROUP, "v1", PLURAL)


class DefinitionController:
    """See the module. For one event loop."""

    def __init__(self, resources: CustomResources, core: Core) -> None:
        self._store, self._own, self._clock = core.store, core.own, core.clock
        self._resources = resources
        self._next_tick = NextTick(self._run)
        self._unread = {stored.name for stored in core.store.list(DEFINITIONS)}
        """The definitions that were written since they were read."""
        self._emptied: dict[GVR, str | None] = {}
        """The resources whose objects are being deleted, with the key of the next one; None: all have been deleted or
        marked."""
        self._known: dict[str, Definition] = {}
        """The definitions as they were read last."""
        self._unserved = False
        """Whether definitions were read since the last call of ``serve``."""
        self._uses: Counter[Use] = Counter()
        """How many definitions have each name."""
        self._changed: set[str] = set()
        """Definitions whose names have to be checked, since they were written or others got or lost one of them."""
        core.store.subscribe(DEFINITIONS, self._written)
        if self._unread:
            self._run()

    def _written(self, event: Event) -> None:
        self._unread.add(event.stored.name)
        self._next_tick.ask(event)

    def _run(self) -> None:
        self._read()
        for name in sorted(self._changed):
            self._update(name, self._accept)
            self._changed.discard(name)
        self._serve()
        for name, definition in sorted(self._known.items()):
            if definition.accepted and not definition.established:
                self._update(name, self._establish)
            if definition.terminating:
                self._finish(name)
        self._serve()

    def _read(self) -> None:
        """Read the definitions that have been written, and record whose names have to be checked."""
        names, self._unread = self._unread, set()
        moved: set[Use] = set()
        for name in names:
            stored, before = self._store.get(DEFINITIONS, "", name), self._known.pop(name, None)
            had, has = frozenset[Use]() if before is None else before.uses, frozenset[Use]()
            if stored is not None:
                self._known[name] = definition_of(stored.doc)
                self._changed.add(name)
                has = self._known[name].uses
            elif before is not None and before.established:
                self._emptied.pop(before.stored_as, None)
                self._store.forget(before.stored_as)
            self._uses.update(has - had)
            self._uses.subtract(had - has)
            moved |= had ^ has
            self._unserved = True
        for use in moved:
            if not self._uses[use]:
                del self._uses[use]
        if moved:
            lacking = [(name, one) for name, one in self._known.items() if not one.accepted]
            self._changed |= {name for name, one in lacking if not moved.isdisjoint(uses_of(one.group, one.wanted))}

    def _serve(self) -> None:
        self._read()
        if self._unserved:
            self._unserved = False
            self._resources.serve([definition for _, definition in sorted(self._known.items())])

    def _update(self, name: str, change: Callable[[Tree], bool]) -> None:
        """Write a definition's status if ``change`` returns True. Only metadata and status are copies."""
        current = self._store.get(DEFINITIONS, "", name)
        if current is None:
            return
        held: Tree = current.doc
        doc = {**held, "metadata": copy(held["metadata"]), "status": copy(held.get("status") or {})}
        if change(doc):
            self._own.update_status(DEFINITIONS, current, doc)

    def _now(self) -> str:
        return format_time(self._clock.now())

    # Names.

    def _accept(self, doc: Tree) -> bool:
        """Accept the names that no other definition of the group has."""
        changed = self._approve(doc)
        wanted, status = doc["spec"]["names"], doc["status"]
        known = status.get("acceptedNames") or {}
        if wanted == known:
            return changed
        names, reason, message = _accepted_names(wanted, known, self._in_use(doc))
        old = condition(doc, "NamesAccepted")
        judged = ("True", "NoConflicts", "no conflicts found") if not reason else ("False", reason, message)
        if names == known and old is not None and (old["status"], old["reason"], old["message"]) == judged:
            return changed
        status["acceptedNames"] = names
        now = self._now()
        set_condition(doc, now, "NamesAccepted", *judged)
        if not reason and not is_true(doc, "Established"):
            set_condition(doc, now, "Established", "False", "Installing", "the initial names have been accepted")
        elif condition(doc, "Established") is None:
            set_condition(doc, now, "Established", "False", "NotAccepted", "not all names are accepted")
        return True

    def _in_use(self, doc: Tree) -> set[Use]:
        """The names that a definition wants and others have."""
        self._read()
        known = self._known.get(doc["metadata"]["name"])
        own = frozenset[Use]() if known is None else known.uses
        wanted = uses_of(doc["spec"]["group"], doc["spec"]["names"])
        return {use for use in wanted if self._uses[use] > (use in own)}

    def _approve(self, doc: Tree) -> bool:
        """Set KubernetesAPIApprovalPolicyConformant for protected groups."""
        if not is_protected(doc["spec"]["group"]):
            return False
        judged = approval((doc["metadata"].get("annotations") or {}).get(APPROVED) or "")
        old = condition(doc, "KubernetesAPIApprovalPolicyConformant")
        if old is not None and (old["status"], old["reason"], old["message"]) == judged:
            return False
        set_condition(doc, self._now(), "KubernetesAPIApprovalPolicyConformant", *judged)
        return True

    def _establish(self, doc: Tree) -> bool:
        if not is_true(doc, "NamesAccepted") or is_true(doc, "Established"):
            return False
        judged = ("True", "InitialNamesAccepted", "the initial names have been accepted")
        if trusts_nothing(doc):
            judged = ("False", "InvalidCABundle", "The conversion webhook CABundle is invalid")
            old = condition(doc, "Established")
            if old is not None and (old["status"], old["reason"]) == judged[:2]:
                return False
        set_condition(doc, self._now(), "Established", *judged)
        return True

    # Deletion.

    def _finish(self, name: str) -> None:
        """Continue the deletion of a definition that is terminating."""
        stored = self._store.get(DEFINITIONS, "", name)
        doc: Tree = {} if stored is None else stored.doc
        if stored is None or not doc["metadata"].get("deletionTimestamp"):
            return
        if FINALIZER not in (doc["metadata"].get("finalizers") or ()):
            return
        definition = definition_of(doc)
        if definition.established and not self._delete_objects(definition):
            self._update(name, self._in_progress)
            return
        ended = ("InstanceDeletionCompleted", "removed all instances")
        if not definition.established:
            ended = ("NeverEstablished", "resource was never established")
        self._update(name, lambda doc: self._set_terminating(doc, "False", *ended))
        self._remove_finalizer(name)

    def _delete_objects(self, definition: Definition) -> bool:
        """Delete all objects, in turns of the loop. False if some are left, since there are too many or since they have
        finalizers."""
        gvr = definition.stored_as
        if gvr not in self._emptied:
            self._emptied[gvr] = ""
            self._store.subscribe(gvr, partial(self._object_written, gvr))
        start = self._emptied[gvr]
        if start is not None:
            left, part = deque(self._store.scan(gvr, start=start)), Part(TURN_S)
            while left:
                self._own.retire(gvr, left.popleft())
                if left and part.is_over():
                    self._emptied[gvr] = left[0].key
                    self._next_tick.ask()
                    return False
            self._emptied[gvr] = None
        return not self._store.count(gvr)

    def _object_written(self, gvr: GVR, event: Event) -> None:
        if event.type != "DELETED" and self._is_missed(gvr, event.stored):
            self._emptied[gvr] = ""
        if event.type != "MODIFIED":
            self._next_tick.ask(event)

    def _is_missed(self, gvr: GVR, stored: Stored) -> bool:
        """Whether the deletion of all objects has passed one that is not being deleted: of a request that began
        earlier, or of a snapshot that was restored."""
        start, doc = self._emptied.get(gvr, ""), cast("Tree", stored.doc)
        return (start is None or stored.key < start) and not doc["metadata"].get("deletionTimestamp")

    def _in_progress(self, doc: Tree) -> bool:
        found = condition(doc, "Terminating")
        if found is not None and found["reason"] == "InstanceDeletionInProgress":
            return False
        message = "CustomResource deletion is in progress"
        return self._set_terminating(doc, "True", "InstanceDeletionInProgress", message)

    def _set_terminating(self, doc: Tree, status: str, reason: str, message: str) -> bool:
        set_condition(doc, self._now(), "Terminating", status, reason, message)
        return True

    def _remove_finalizer(self, name: str) -> None:
        """Remove the finalizer. Without further ones the definition is deleted."""
        stored = self._store.get(DEFINITIONS, "", name)
        if stored is None:
            return
        doc: Tree = stored.copy()
        rest = [one for one in doc["metadata"].get("finalizers") or () if one != FINALIZER]
        if rest:
            doc["metadata"]["finalizers"] = rest
            self._own.replace(DEFINITIONS, stored, doc)
        else:
            self._own.delete(DEFINITIONS, stored)


def _accepted_names(wanted: Tree, known: Tree, taken: set[Use]) -> tuple[Tree, str, str]:
    """The accepted names, and the reason and message of a conflict (empty without one)."""
    names: Tree = {"plural": "", "kind": "", **known}
    reason = message = ""
    resources = {name for _, used_as, name in taken if used_as == "resource"}
    kinds = {name for _, used_as, name in taken if used_as == "kind"}
    for field, word, used in (
        ("plural", "Plural", resources),
        ("singular", "Singular", resources),
        ("shortNames", "ShortNames", resources),
        ("kind", "Kind", kinds),
        ("listKind", "ListKind", kinds),
    ):
        own = known.get(field)
        parts: list[str] = wanted.get(field) or [] if field == "shortNames" else [wanted.get(field) or ""]
        before = own or [] if field == "shortNames" else [own or ""]
        conflicts = [f"{quote(part)} is already in use" for part in parts if part in used and part not in before]
        if conflicts:
            reason = f"{word}Conflict"
            message = aggregated(conflicts)
        else:
            put(names, field, wanted.get(field))
    put(names, "categories", wanted.get("categories"))
    return names, reason, message
