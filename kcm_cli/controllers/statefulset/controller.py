"""statefulset-controller: runs pods with stable names, and creates, updates and deletes them in order.

upstream: pkg/controller/statefulset
"""

import logging
from collections.abc import Sequence
from datetime import datetime

from kcm_cli.api.apps import CONTROLLER_REVISIONS, STATEFUL_SETS, ControllerRevision, StatefulSet, StatefulSetStatus
from kcm_cli.api.core import PERSISTENT_VOLUME_CLAIMS, PODS, PersistentVolumeClaim, Pod
from kcm_cli.component.metrics import Registry
from kcm_cli.controllers.shared.availability import when_available
from kcm_cli.controllers.shared.failed_pods import FailedPods
from kcm_cli.controllers.shared.revisions import Revisions
from kcm_cli.controllers.statefulset.config import StatefulSetConfig
from kcm_cli.controllers.statefulset.history import Found, History
from kcm_cli.controllers.statefulset.plan import Replicas, differs, plan, status, unobserved
from kcm_cli.controllers.statefulset.plan import revisions as revision_rules
from kcm_cli.controllers.statefulset.plan.claims import template_names
from kcm_cli.controllers.statefulset.plan.decide import present_pods
from kcm_cli.controllers.statefulset.plan.identity import (
    is_member,
    parent_and_ordinal,
)
from kcm_cli.controllers.statefulset.plan.snapshot import Snapshot
from kcm_cli.controllers.statefulset.plan.update import ON_DELETE, max_unavailable, unavailable
from kcm_cli.controllers.statefulset.pods import ALONE, PodControl
from kcm_cli.engine import writes
from kcm_cli.engine.claiming import RefManager
from kcm_cli.engine.context import ControllerContext
from kcm_cli.engine.controller import Controller, Keys, Owns, Queue, StartLines, Watch
from kcm_cli.engine.own_writes import CREATE, UPDATE
from kcm_cli.engine.worker import Failures
from kcm_cli.machinery.errors import FormatError
from kcm_cli.machinery.kref import kobj
from kcm_cli.machinery.labels import Selector, from_label_selector
from kcm_cli.machinery.meta import Object, controller_of, split_key
from kcm_cli.planning import pods as pod_rules
from kcm_cli.planning.status import status_changes
from kcm_cli.rest.transport import RequestError
from kcm_cli.runtime.store import CONTROLLER_UID, Store, by_controller, claimable, controlled_by

log = logging.getLogger(__name__)

_LABELS = ("statefulset_namespace", "statefulset_name", "pod_management_policy")
_POLICIES = ("OrderedReady", "Parallel")
ALWAYS = ("replicas", "availableReplicas")


class StatefulSetMetrics:
    """The metrics statefulset_controller_*."""

    def __init__(self, registry: Registry) -> None:
        self._allowed = registry.gauge(
            "statefulset_controller_statefulset_max_unavailable",
            "Number of pods that may be unavailable during a rolling update of the StatefulSet.",
            labels=_LABELS,
        )
        self._down = registry.gauge(
            "statefulset_controller_statefulset_unavailable_replicas",
            "Number of pods of the StatefulSet that are missing or not available.",
            labels=_LABELS,
        )

    def allowed(self, set_: Object, policy: str, count: int) -> None:
        self._allowed.labels(set_.namespace, set_.name, policy).set(count)

    def down(self, set_: Object, policy: str, count: int) -> None:
        self._down.labels(set_.namespace, set_.name, policy).set(count)

    def forget(self, namespace: str, name: str) -> None:
        """Remove the series of a deleted StatefulSet."""
        for policy in _POLICIES:
            self._allowed.remove(namespace, name, policy)
            self._down.remove(namespace, name, policy)


MAXIMUM_BACKOFF_S = 60.0
"""The longest delay before a pod is deleted that its node rejected."""


class StatefulSetController:
    """Reads a StatefulSet with its pods, claims and revisions, plans, executes the plan, and writes the status once."""

    def __init__(self, context: ControllerContext) -> None:
        self._clock = context.clock
        self._client = context.client
        self._counts_unavailable = context.gates.enabled("MaxUnavailableStatefulSet")
        self._compares_defaulted = context.gates.enabled("StatefulSetSemanticRevisionComparison")
        self._executor = context.executor(PodControl(context.client, context.recorder).send, ALONE)
        self._refs = RefManager(self._executor, STATEFUL_SETS, PODS)
        self.metrics = StatefulSetMetrics(context.metrics)
        self._sets = context.cache(STATEFUL_SETS)
        self._pods = context.cache(PODS)
        self._claims = context.cache(PERSISTENT_VOLUME_CLAIMS)
        self._revisions = Revisions(self._client, context.cache(CONTROLLER_REVISIONS))
        self._history = History(self._executor, self._revisions)
        self._pods.store.add_index(CONTROLLER_UID, by_controller)
        self._rejected = FailedPods(MAXIMUM_BACKOFF_S)

    async def sync(self, key: str) -> float | None:
        set_ = self._sets.store.get(key)
        if set_ is None:
            log.info("StatefulSet has been deleted", extra={"fields": {"key": key}})
            self.metrics.forget(*split_key(key))
            return None
        try:
            selector = from_label_selector(set_.spec.selector)
        except FormatError as invalid:
            fields = {"key": key, "err": str(invalid)}
            log.error("Error converting StatefulSet selector", extra={"fields": fields})
            return None  # retrying would not help
        try:
            revisions = await self._history.of(set_, selector)
            pods = await self._claim(set_, selector)
            wanted = revision_rules.wanted(set_, revisions, semantic=self._compares_defaulted)
            found = await self._history.ensure(set_, wanted)
        except RequestError:
            await self._write_status(set_, unobserved(set_, self._owned(set_, selector), self._clock.now()))
            raise
        snapshot = self._read(set_, pods, revisions, found)
        now = self._clock.now()
        planned = plan(snapshot, now, counts_unavailable=self._counts_unavailable)
        error = await self._act(snapshot, planned, now)
        await self._prune(snapshot, revisions)
        if error is not None:
            raise error
        if planned.cut_short:
            return 0.0  # a claim that is created does not queue the set
        available_s = pod_rules.next_available_s(pods, set_.spec.min_ready_seconds, now)
        waits_s = self._waits_s(set_, pods).values()
        return min((seconds for seconds in (available_s, *waits_s) if seconds is not None), default=None)

    def waiting_for(self, claim: PersistentVolumeClaim) -> Keys:
        """The StatefulSets that had this claim, when it is gone: one of their pods may wait for that, or for a new one.
        Upstream looks again when something else happens, or after the delay of a failed sync."""
        parent, ordinal = parent_and_ordinal(claim.name)
        if ordinal < 0:
            return ()
        parts = parent.split("-")
        splits = (("-".join(parts[:n]), "-".join(parts[n:])) for n in range(1, len(parts)))
        found = ((template, self._sets.store.get(f"{claim.namespace}/{name}")) for template, name in splits)
        return tuple(set_.key for template, set_ in found if set_ is not None and template in template_names(set_))

    def that_wants(self, pod: Pod) -> Keys:
        """The StatefulSet whose pod could not be made beside one of its name, when that is gone. It may be one of a
        former set that took its time to end. Upstream looks again after the delay of a failed sync."""
        set_ = self._sets.store.get(f"{pod.namespace}/{parent_and_ordinal(pod.name)[0]}")
        ref = controller_of(pod)
        return () if set_ is None or (ref is not None and ref.uid == set_.uid) else (set_.key,)

    def with_fewer_owners(self, old: PersistentVolumeClaim, new: PersistentVolumeClaim) -> Keys:
        """The StatefulSets that had this claim, when a former pod no longer owns it, and another owner keeps it."""
        if old.metadata.owner_references == new.metadata.owner_references:
            return ()
        present = {ref.uid for ref in new.metadata.owner_references}
        lost = any(ref.uid not in present for ref in old.metadata.owner_references)
        return self.waiting_for(new) if lost else ()

    async def _act(self, snapshot: Snapshot, planned: Replicas, now: datetime) -> Exception | None:
        """Execute the plan and write the status. Returns the error, so that the sync can continue."""
        set_ = snapshot.set
        self._measure(snapshot, planned, now)
        self._delay([pod for pod in planned.deleted if pod_rules.is_rejected(pod)], set_)
        outcome = await self._executor.run(planned.stages)
        await self._write_status(set_, status(snapshot, planned, outcome, now))
        return outcome.error

    def _delay(self, rejected: Sequence[Pod], set_: StatefulSet) -> None:
        """Double the delays of pods that are deleted now."""
        now = self._clock.monotonic()
        if rejected:
            self._rejected.collect(now)
        for pod in rejected:
            self._rejected.next(_backoff_key(set_, pod), now)

    # -- reading

    async def _claim(self, set_: StatefulSet, selector: Selector) -> list[Pod]:
        candidates = claimable(self._pods.store, set_)
        claimed = await self._refs.claim(set_, selector, candidates, member=lambda pod: is_member(set_, pod))
        if claimed.error is not None:
            raise claimed.error
        return claimed.members

    def _owned(self, set_: StatefulSet, selector: Selector) -> list[Pod]:
        """The pods that the set controls and its selector matches."""
        pods = controlled_by(self._pods.store, set_.namespace, set_.uid)
        return [pod for pod in pods if selector.matches(pod.labels) and is_member(set_, pod)]

    def _read(
        self, set_: StatefulSet, pods: Sequence[Pod], revisions: Sequence[ControllerRevision], found: Found
    ) -> Snapshot:
        current = revision_rules.current(set_, revisions, found.update)
        claims = _Claims(self._claims.store, set_.namespace)
        waiting = frozenset(self._waits_s(set_, pods))
        return Snapshot(set_, tuple(pods), current, found.update, claims, found.collisions, waiting)

    def _waits_s(self, set_: StatefulSet, pods: Sequence[Pod]) -> dict[str, float]:
        """By uid: the delays of pods that their nodes rejected, and that may not be deleted yet.

        Upstream deletes and creates such a pod again and again, as fast as the node rejects it.
        """
        now = self._clock.monotonic()
        rejected = (pod for pod in pods if pod_rules.is_rejected(pod) and not pod.deleting)
        found = ((pod.uid, self._rejected.waits(_backoff_key(set_, pod), now)) for pod in rejected)
        return {uid: delay for uid, delay in found if delay is not None}

    # -- writing

    async def _write_status(self, set_: StatefulSet, new: StatefulSetStatus) -> None:
        """Write the status if it differs."""
        if not differs(set_.status, new):
            return
        changes = status_changes(new, always=ALWAYS)
        try:
            await writes.put_status(self._client, STATEFUL_SETS, set_, changes, writes.ON_CONFLICT)
        except RequestError as error:
            fields = {"statefulSet": kobj(set_), "err": str(error)}
            log.error("Could not update status", extra={"fields": fields})
            raise

    async def _prune(self, snapshot: Snapshot, revisions: Sequence[ControllerRevision]) -> None:
        live = (snapshot.current.name, snapshot.update.name)
        await self._revisions.delete(revision_rules.surplus(snapshot.set, revisions, snapshot.pods, live))

    def _measure(self, snapshot: Snapshot, planned: Replicas, now: datetime) -> None:
        if not self._counts_unavailable:
            return
        set_ = snapshot.set
        policy = set_.spec.pod_management_policy
        self.metrics.allowed(set_, policy, max_unavailable(set_))
        if set_.spec.update_strategy.type != ON_DELETE:
            self.metrics.down(set_, policy, unavailable(snapshot, present_pods(planned.slots), now))


class _Claims:
    """The claims of a namespace in the cache."""

    def __init__(self, store: Store[PersistentVolumeClaim], namespace: str) -> None:
        self._store = store
        self._namespace = namespace

    def get(self, name: str, /) -> PersistentVolumeClaim | None:
        return self._store.get(f"{self._namespace}/{name}")


def _backoff_key(set_: StatefulSet, pod: Pod) -> str:
    return f"{set_.uid}/{set_.metadata.generation}/{pod.name}"


CONTROLLER = Controller(
    StatefulSetController,
    Queue(
        "statefulset",
        STATEFUL_SETS,
        owns=(Owns(PODS, updated=when_available()),),
        watches=(
            Watch(
                PERSISTENT_VOLUME_CLAIMS,
                updated=StatefulSetController.with_fewer_owners,
                deleted=StatefulSetController.waiting_for,
            ),
            Watch(PODS, deleted=StatefulSetController.that_wants),
        ),
        sync=StatefulSetController.sync,
        failures=Failures(retried="Error syncing StatefulSet, requeuing", key="key"),
        workers=StatefulSetConfig,
        writes=(STATEFUL_SETS, PODS, PERSISTENT_VOLUME_CLAIMS, CONTROLLER_REVISIONS),
        stale_gate="StaleControllerConsistencyStatefulSet",
        without_gate=frozenset((CREATE, UPDATE)),
    ),
    reads=(CONTROLLER_REVISIONS,),
    announces=(StartLines("Starting stateful set controller", "Shutting down statefulset controller"),),
)
