"""Delete and deletecollection: preconditions, grace periods, finalizers, propagation.

upstream: apiserver pkg/registry/rest/delete.go, pkg/registry/generic/registry/store.go#Delete (v1.36)
"""

import sys
from datetime import datetime, timedelta

import msgspec
from msgspec.structs import replace

from kcm_cli.api.well_known import FOREGROUND, ORPHAN
from kcm_cli.machinery.times import format_time, parse_time
from kcm_cli.rest.transport import Response
from kcm_cli.runtime.turns import TURN_S, Part
from kcm_cli.sandbox.apiserver.errors import conflict, forbidden, not_found, precondition
from kcm_cli.sandbox.apiserver.registry import objects
from kcm_cli.sandbox.apiserver.registry.call import Call
from kcm_cli.sandbox.apiserver.registry.core import Core
from kcm_cli.sandbox.apiserver.registry.options import DeleteOptions, Preconditions, delete_options, list_options
from kcm_cli.sandbox.apiserver.registry.reading import check_list_version, select
from kcm_cli.sandbox.apiserver.store import Conflict, NotFound, Stored
from kcm_cli.sandbox.apiserver.strategy.base import Strategy, Terminating
from kcm_cli.sandbox.apiserver.trees import put
from kcm_cli.sandbox.apiserver.types import ApiError, Attributes, Tree


class _Outcome(msgspec.Struct, frozen=True):
    """The result of a deletion. ``shown``: the object, if the response is that and not a Status."""

    shown: Stored | Tree | None
    uid: str
    removed: bool


class Deleter:
    """Handles delete and deletecollection.

    A graceful deletion with a period of 0 has two writes. Between them is the time that etcd takes
    (``Settings.deletion_gap_s``), so that controllers of clients see the deletionTimestamp before the object is gone.
    """

    def __init__(self, core: Core) -> None:
        self._core = core

    async def delete(self, call: Call) -> Response:
        """DELETE of one object. Raises ApiError."""
        options = delete_options(self._core.schemas, call.request, call.query)
        self._warn(call, options)
        why = self._core.rules(call.hub.info).lasting.get(call.name)
        if why is not None:
            gvr = call.resource.gvr
            raise forbidden(gvr.group, gvr.plural, call.name, why)
        outcome = await self.remove(call, options)
        status = 202 if not outcome.removed and options.orphan_dependents is False else 200
        if isinstance(outcome.shown, Stored):
            await self._core.prepare(call.served, outcome.shown)
            return call.media.object(status, outcome.shown)
        if outcome.shown is not None:
            return call.media.document(status, self._core.from_storage(call.served, outcome.shown))
        details: Tree = {"name": call.name, "group": call.resource.gvr.group, "kind": call.resource.gvr.plural}
        if not details["group"]:
            del details["group"]
        details["uid"] = outcome.uid
        document: Tree = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details}
        return call.media.document(status, document)

    async def delete_collection(self, call: Call) -> Response:
        """DELETE of all objects that a list selects. Responds with the list. Raises ApiError."""
        listed = list_options(call.query)
        check_list_version(listed)
        if listed.version and not listed.limit:
            listed = replace(listed, limit=sys.maxsize)  # the version of a list with a limit is an exact one
        chosen, page = await select(self._core, call, listed)
        options = delete_options(self._core.schemas, call.request, call.query)
        self._warn(call, options)
        part = Part(TURN_S)
        for stored in chosen:
            one = _of(call, stored)
            if part.is_over():
                await part.next()
            try:
                await self.remove(one, options)
            except ApiError as error:
                if error.code != 404:
                    raise
            call.warnings += [text for text in one.warnings if text not in call.warnings]
        await self._core.prepare(call.served, *chosen, cached=True)
        return await call.media.list(chosen, page.revision, page.more, page.left)

    async def remove(self, call: Call, options: DeleteOptions, *, admit: bool = True) -> _Outcome:
        """Delete the object of the call, or mark it as terminating. Raises ApiError.

        admit: run admission, unless that of another verb has run.
        """
        while True:
            current = self._core.store.get(call.hub.storage, call.namespace, call.name)
            if current is None:
                raise not_found(*call.resource.named, call.name)
            await self._core.prepare(call.served, current)
            try:
                return await self._attempt(call, options, current, admit=admit)
            except (Conflict, NotFound):
                continue

    async def _attempt(self, call: Call, options: DeleteOptions, current: Stored, *, admit: bool) -> _Outcome:
        old: Tree = current.doc
        rules = self._core.rules(call.hub.info)
        if rules.terminating is not None and (done := await self._begin(call, options, current, rules.terminating)):
            return done
        self.check_preconditions(call, options, old["metadata"])
        doc = current.copy()
        meta: Tree = doc["metadata"]  # type: ignore[assignment]  # every stored object has metadata
        uid: str = meta["uid"]
        mark = _Mark(rules, options, self._core.clock.now())
        if mark.pending(meta):
            return _Outcome(current if rules.returns_object_on_delete else None, uid, False)
        graceful_s = mark.grace(doc)
        asked, options = options, mark.options
        finalizers = _finalizers(meta, options, rules)
        changed = set(finalizers) != set(meta.get("finalizers") or ())
        shown = asked if call.info.verb == "deletecollection" else options  # upstream deletes items with copies of them
        if admit:
            await self._admit(call, shown, self._core.from_storage(call.hub, old))
        if changed:
            put(meta, "finalizers", finalizers)
        if graceful_s is None and finalizers:
            mark.at_once(meta)
        if graceful_s is None and not finalizers:
            return self._remove(call, options, rules, current)
        if options.dry:
            return _Outcome(doc, uid, False)
        stored = self._core.store.update(call.hub.storage, call.namespace, call.name, doc, current.revision)
        if finalizers or graceful_s:
            return _Outcome(stored, uid, False)
        if self._core.settings.deletion_gap_s:
            await self._core.clock.sleep(self._core.settings.deletion_gap_s)
            latest = self._core.store.get(call.hub.storage, call.namespace, call.name)
            if latest is None or _uid(latest) != uid:
                return _Outcome(stored if rules.returns_object_on_delete else None, uid, True)
            stored = latest
        if admit:  # upstream asks again about the object that it has just marked
            await self._admit(call, shown, self._core.from_storage(call.hub, stored.doc))
        return self._remove(call, options, rules, stored)

    async def _begin(
        self, call: Call, options: DeleteOptions, current: Stored, terminating: Terminating
    ) -> _Outcome | None:
        """Mark an object as terminating. None if it can be deleted as any other object."""
        old: Tree = current.doc
        _check_metadata(call, options, old["metadata"])
        uid: str = old["metadata"]["uid"]
        if old["metadata"].get("deletionTimestamp"):
            return _Outcome(current, uid, False) if terminating.held(old) else None
        known = replace(options.preconditions or Preconditions(), uid=uid)  # as upstream's storage
        await self._admit(call, replace(options, preconditions=known), old)
        doc: Tree = current.copy()
        policy, orphan = options.propagation_policy, options.orphan_dependents
        if orphan is not None:
            policy = "Orphan" if orphan else "Foreground"
        terminating.mark(doc, policy, format_time(self._core.clock.now()))
        doc = objects.ordered(call.hub.info, doc)
        if options.dry:
            return _Outcome(doc, uid, False)
        stored = self._core.store.update(call.hub.storage, call.namespace, call.name, doc, current.revision)
        return _Outcome(stored, uid, False)

    def _remove(self, call: Call, options: DeleteOptions, rules: Strategy, current: Stored) -> _Outcome:
        uid: str = current.doc["metadata"]["uid"]  # type: ignore[index]
        last = current
        if not options.dry:
            gvr = call.hub.storage
            last = self._core.store.delete(gvr, call.namespace, call.name, expected=current.revision)
        return _Outcome(last if rules.returns_object_on_delete else None, uid, True)

    async def _admit(self, call: Call, options: DeleteOptions, old: Tree) -> None:
        document: Tree = {"kind": "DeleteOptions", "apiVersion": "meta.k8s.io/v1"}
        if options.grace_period_seconds is not None:
            document["gracePeriodSeconds"] = options.grace_period_seconds
        if options.propagation_policy is not None:
            document["propagationPolicy"] = options.propagation_policy
        if options.orphan_dependents is not None:
            document["orphanDependents"] = options.orphan_dependents
        if options.preconditions is not None:
            wanted = msgspec.to_builtins(options.preconditions)
            document["preconditions"] = {key: value for key, value in wanted.items() if value is not None}
        if options.dry:
            document["dryRun"] = ["All"]
        name = "" if call.info.verb == "deletecollection" else call.name  # upstream's attributes have no name there
        attrs = Attributes(
            "DELETE", call.resource, "", call.info.namespace, name, call.user, None, old, options.dry,
            document, call.warnings,
        )  # fmt: skip
        await self._core.admission.mutate(attrs)
        await self._core.admission.validate(attrs)

    def _warn(self, call: Call, options: DeleteOptions) -> None:
        """Warn that dependents stay if the request does not say otherwise, even if the object does not exist."""
        warning = self._core.rules(call.hub.info).kept_dependents
        if warning and options.propagation_policy is None and options.orphan_dependents is None:
            call.warnings.append(warning)

    def check_preconditions(self, call: Call, options: DeleteOptions, meta: Tree) -> None:
        """Raises ApiError 409."""
        wanted = options.preconditions
        if wanted is None:
            return
        why = ""
        if wanted.uid is not None and wanted.uid != meta["uid"]:
            why = (
                f"the UID in the precondition ({wanted.uid}) does not match the UID in record ({meta['uid']}). "
                "The object might have been deleted and then recreated"
            )
        elif wanted.resourceVersion is not None and wanted.resourceVersion != meta["resourceVersion"]:
            why = (
                f"the ResourceVersion in the precondition ({wanted.resourceVersion}) does not match the "
                f"ResourceVersion in record ({meta['resourceVersion']}). The object might have been modified"
            )
        if why:
            raise conflict(call.hub.info.gvr.group, call.hub.info.kind, call.name, why)


def _uid(stored: Stored) -> object:
    doc: Tree = stored.doc
    return doc["metadata"]["uid"]


def _check_metadata(call: Call, options: DeleteOptions, meta: Tree) -> None:
    """Raises ApiError 409 if a precondition of a deletion that only begins does not hold."""
    wanted = options.preconditions
    if wanted is None:
        return
    for word, given, known in (
        ("UID", wanted.uid, meta["uid"]),
        ("ResourceVersion", wanted.resourceVersion, meta["resourceVersion"]),
    ):
        if given is not None and given != known:
            raise conflict(*call.resource.named, call.name, precondition(word, given, known))


class _Mark:
    """Sets deletionTimestamp and deletionGracePeriodSeconds. options: those of the deletion, which has the object's own
    grace period as soon as that is known. Admission sees it."""

    def __init__(self, rules: Strategy, options: DeleteOptions, now: datetime) -> None:
        self.options = options
        self._rules = rules
        self._now = now
        period = options.grace_period_seconds
        self._period = 1 if period is not None and period < 0 else period

    def pending(self, meta: Tree) -> bool:
        """Whether a graceful deletion is in progress that this request does not shorten."""
        known: int | None = meta.get("deletionGracePeriodSeconds")
        if self._rules.grace_period is None or not meta.get("deletionTimestamp") or not known:
            return False
        return self._period is None or self._period >= known

    def grace(self, doc: Tree) -> int | None:
        """Mark the object. Returns the grace period in seconds, or None if there is none."""
        rules, meta = self._rules, doc["metadata"]
        if rules.grace_period is None:
            return None
        if not meta.get("deletionTimestamp"):
            period = rules.grace_period(doc, self._period)
            meta["deletionTimestamp"] = format_time(_after(self._now, period))
            meta["deletionGracePeriodSeconds"] = period
            self.options = replace(self.options, grace_period_seconds=period)
            if meta.get("generation"):
                meta["generation"] += 1
            return period
        known = meta.get("deletionGracePeriodSeconds")
        if not known or self._period is None:
            return None
        return self._shorten(meta, known, self._period)

    def _shorten(self, meta: Tree, known: int, period: int) -> int:
        end = _after(_after(parse_time(meta["deletionTimestamp"]), -known), period)
        if end < self._now:
            end, period = self._now, min(period, 1)
        meta["deletionTimestamp"] = format_time(end)
        meta["deletionGracePeriodSeconds"] = period
        return period

    def at_once(self, meta: Tree) -> None:
        """Mark an object without a grace period that has finalizers."""
        known = meta.get("deletionTimestamp")
        if not known and meta.get("generation"):
            meta["generation"] += 1
        if not known or parse_time(known) > self._now:
            meta["deletionTimestamp"] = format_time(self._now)
        meta["deletionGracePeriodSeconds"] = 0


def _after(time: datetime, seconds: int) -> datetime:
    """The time after a grace period. As upstream, one of more nanoseconds than 64 bits hold wraps round."""
    nanoseconds = (seconds * 10**9 + (1 << 63)) % (1 << 64) - (1 << 63)
    return time + timedelta(microseconds=nanoseconds // 1000)


def _finalizers(meta: Tree, options: DeleteOptions, rules: Strategy) -> list[str]:
    """The finalizers, including those of the garbage collector for the propagation policy."""
    given: list[str] = meta.get("finalizers") or []
    kept = [one for one in given if one not in (ORPHAN, FOREGROUND)]
    if rules.propagation == "Unsupported":
        return kept
    return [*kept, *_collectors(given, options, rules)]


def _collectors(given: list[str], options: DeleteOptions, rules: Strategy) -> list[str]:
    """The finalizer of the garbage collector that decides on dependents, if there is one."""
    if options.orphan_dependents is not None:
        return [ORPHAN] if options.orphan_dependents else []
    if options.propagation_policy is not None:
        return _OF_POLICIES.get(options.propagation_policy, [])
    known = [one for one in given if one in (ORPHAN, FOREGROUND)]
    return known[:1] or ([ORPHAN] if rules.propagation == "Orphan" else [])


_OF_POLICIES = {"Orphan": [ORPHAN], "Foreground": [FOREGROUND]}


def _of(call: Call, stored: Stored) -> Call:
    """The call that deletes one object of a collection."""

    info = replace(call.info, name=stored.name, namespace=stored.namespace)
    return replace(call, info=info, warnings=[])
