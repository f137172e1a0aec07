"""daemonset-controller: runs one pod of each DaemonSet on every eligible node.

upstream: pkg/controller/daemon
"""

import logging
import math
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from operator import is_

from msgspec.structs import replace

from kcm_cli.api.apps import CONTROLLER_REVISIONS, DAEMON_SETS, DaemonSet, DaemonSetStatus
from kcm_cli.api.core import NODES, PODS, Node, Pod
from kcm_cli.component.logs import V2
from kcm_cli.controllers.daemonset.config import DaemonSetConfig
from kcm_cli.controllers.daemonset.history import History, RevisionHistory
from kcm_cli.controllers.daemonset.placements import Placements
from kcm_cli.controllers.daemonset.plan import plan, status
from kcm_cli.controllers.daemonset.plan.history import surplus
from kcm_cli.controllers.daemonset.plan.place import Snapshot
from kcm_cli.controllers.daemonset.plan.placement import by_node as pods_by_node
from kcm_cli.controllers.daemonset.plan.placement import same_to_daemons, waits_for
from kcm_cli.controllers.daemonset.plan.pod import matters
from kcm_cli.controllers.shared.availability import when_available
from kcm_cli.controllers.shared.failed_pods import FailedPods
from kcm_cli.controllers.shared.revisions import Revisions
from kcm_cli.engine import writes
from kcm_cli.engine.claiming import RefManager
from kcm_cli.engine.context import ControllerContext
from kcm_cli.engine.controller import Controller, Keys, Owns, Periodic, Queue, Watch, own_key, starting
from kcm_cli.engine.worker import unhandled
from kcm_cli.engine.writes import tell
from kcm_cli.machinery.errors import FormatError
from kcm_cli.machinery.kref import kobj
from kcm_cli.machinery.labels import Selector, from_label_selector
from kcm_cli.machinery.meta import controller_of
from kcm_cli.planning import pods as pod_rules
from kcm_cli.planning.actions import Create, Notice, Outcome, ref_to
from kcm_cli.planning.pod_template import UnselectedTemplate, check_selected
from kcm_cli.planning.status import status_changes
from kcm_cli.rest.errors import namespace_terminating
from kcm_cli.rest.transport import RequestError
from kcm_cli.runtime.store import CONTROLLER_UID, NODE, by_controller, by_node, claimable, controlled_by
from kcm_cli.runtime.turns import Turns, in_turns

log = logging.getLogger(__name__)

WAITING = "daemon pods that wait for their node"
"""Index of pods by the node that they are made for."""
COLLECT_PERIOD_S = 60.0
SETS = 100
"""So many DaemonSets are looked at for a changed node in a turn at most."""

REPORT_PAUSE_S, REPORT_PAUSE_PER_POD_S = 0.25, 0.0005
"""The shortest time between two writes of a status: the second for each pod, the first at most."""
SKEW_S = 1.0
"""Added to minReadySeconds when a pod is checked again, since timestamps have whole seconds."""
ALWAYS = ("currentNumberScheduled", "numberMisscheduled", "desiredNumberScheduled", "numberReady")


_NOT_CREATED = "Failed creation, decrementing expectations for daemon set"
_NOT_DELETED = "Failed deletion, decremented expectations for daemon set"
_SKIPPED = "Slow-start failure. Skipping creation pods, decrementing expectations for daemon set"


class DaemonSetController:
    """Reads a DaemonSet with its pods, its revisions and all nodes, plans, executes the plan, and writes the status
    once."""

    def __init__(self, context: ControllerContext) -> None:
        self._clock = context.clock
        self._client = context.client
        self._recorder = context.recorder
        self._expectations = context.expectations
        self._executor = context.executor()
        self._refs = RefManager(self._executor, DAEMON_SETS, PODS)
        self._placements = Placements(comparisons=context.gates.enabled("TaintTolerationComparisonOperators"))
        self._failed_pods = FailedPods()
        self._reported: dict[str, float] = {}
        self._queue, _ = context.queues
        self._sets = context.cache(DAEMON_SETS)
        self._pods = context.cache(PODS)
        self._nodes = context.cache(NODES)
        self._revisions = Revisions(self._client, context.cache(CONTROLLER_REVISIONS))
        self._history = RevisionHistory(self._client, self._executor, self._revisions)
        self._pods.store.add_index(CONTROLLER_UID, by_controller)
        self._pods.store.add_index(NODE, by_node)
        self._pods.store.add_index(WAITING, waits_for)

    async def sync(self, key: str) -> float | None:
        daemon_set = self._sets.store.get(key)
        if daemon_set is None:
            self._forget(key)
            return None
        selector = from_label_selector(daemon_set.spec.selector)
        if selector.empty:
            self._refuse_everything(daemon_set)
            return None
        if daemon_set.deleting:
            return None  # its revisions may have been deleted already
        may_plan = self._expectations.satisfied(key, self._clock.monotonic(), daemon_set.uid)
        claimed = await self._refs.claim(daemon_set, selector, claimable(self._pods.store, daemon_set))
        pods = claimed.members
        try:
            check_selected(daemon_set.spec.template, selector)
        except UnselectedTemplate:
            await self._report_only(daemon_set, selector, pods, observed=True)
            raise
        try:
            if claimed.error is not None:
                raise claimed.error
            history = await self._history.of(daemon_set, selector, pods)
        except RequestError:
            await self._report_only(daemon_set, selector, pods, observed=False)
            raise
        await self._placements.prepare(daemon_set, self._nodes.store)
        turns = Turns.of_loop()
        await turns.pause()
        pods = self._latest(daemon_set, selector, pods)
        snapshot = self._read(daemon_set, pods, history.hash)
        error = await self._act(snapshot, history, pods) if may_plan else None
        await turns.pause()
        again_s = await self._report(snapshot, selector, pods, observed=may_plan)
        if error is not None:
            raise error
        return again_s

    async def sync_node(self, name: str) -> None:
        """Queue the DaemonSets that have to create or delete a pod on a changed node, or to count one as misscheduled,
        which stays there though the node would not get one. Of a node that is gone, queue those with a pod that waits
        for it: neither the scheduler nor the garbage collector of pods deletes that one.

        Upstream looks at pods that are bound only. It deletes the others at the next change of any pod of the
        DaemonSet, such as the scheduler's note, which does not queue it here.
        """
        waiting = {self._controller_key(pod) for pod in self._pods.store.by_index(WAITING, name)}
        if self._nodes.store.get(name) is None:
            for key in sorted(waiting):
                self._queue.add(key)
            return
        present = waiting.union(self._controller_key(pod) for pod in self._pods.store.by_index(NODE, name))
        async for key in in_turns(sorted(self._sets.store.keys()), SETS):
            daemon_set, node = self._sets.store.get(key), self._nodes.store.get(name)
            if node is None:
                return
            if daemon_set is None:
                continue
            fit = self._placements.on(daemon_set, node)
            scheduled = daemon_set.key in present
            misplaced = scheduled and (not fit.runs or daemon_set.status.number_misscheduled > 0)
            if misplaced or (fit.runs and not scheduled):
                self._queue.add(daemon_set.key)

    async def collect(self) -> None:
        """Remove expired backoff entries of failed pods."""
        self._failed_pods.collect(self._clock.monotonic())

    # -- reading

    def _read(self, daemon_set: DaemonSet, pods: Sequence[Pod], hash_: str) -> Snapshot:
        fits = self._placements.of(daemon_set, self._nodes.store)
        kept, unseen = _on_nodes(pods), {node.metadata.name for node in self._nodes.store.unseen()}
        return Snapshot(daemon_set, fits, kept, hash_, self._backoff(daemon_set, kept), unseen)

    def _latest(self, daemon_set: DaemonSet, selector: Selector, pods: Sequence[Pod]) -> list[Pod]:
        """The DaemonSet's pods in the cache at present, including those that were just adopted."""
        store = self._pods.store
        own = controlled_by(store, daemon_set.namespace, daemon_set.uid)
        found = [pod for pod in own if selector.matches(pod.labels)]
        seen = set(map(id, found))
        others = [pod for pod in pods if id(pod) not in seen]
        if others:
            keys = {pod.key for pod in found}
            for pod in others:
                known = store.get(pod.key) if pod.key not in keys else None
                if known is not None and known.uid == pod.uid:
                    found.append(known)
        return found

    def _backoff(self, daemon_set: DaemonSet, pods: Mapping[str, Sequence[Pod]]) -> Mapping[str, float]:
        if not self._failed_pods:
            return {}
        now = self._clock.monotonic()
        found: dict[str, float] = {}
        for node, on_node in pods.items():
            if any(pod.status.phase == "Failed" for pod in on_node):
                delay = self._failed_pods.waits(_backoff_key(daemon_set, node), now)
                if delay is not None:
                    found[node] = delay
        return found

    # -- writing

    async def _act(self, snapshot: Snapshot, history: History, pods: Sequence[Pod]) -> Exception | None:
        """Execute the plan. Returns the error, so that the status is written all the same."""
        try:
            return await self._carry_out(snapshot, history, pods)
        except (RequestError, FormatError) as error:
            return error

    async def _carry_out(self, snapshot: Snapshot, history: History, pods: Sequence[Pod]) -> Exception | None:
        daemon_set = snapshot.daemon_set
        planned = plan(snapshot, self._clock.now())
        for node in planned.failed:
            self._failed_pods.next(_backoff_key(daemon_set, node), self._clock.monotonic())
        for remark in planned.remarks:
            tell(remark)
        for notice in planned.notices:
            self._recorder.emit(notice)
        if planned.retry_s is not None:
            self._queue.add_after(daemon_set.key, planned.retry_s)
        outcome = await self._executor.run(planned.stages)
        _log_failures(daemon_set, outcome)
        for failure in outcome.failed:
            if not namespace_terminating(failure.error):
                return failure.error
        await self._revisions.delete(surplus(daemon_set, history.old, pods))
        return None

    async def _report_only(
        self, daemon_set: DaemonSet, selector: Selector, pods: Sequence[Pod], *, observed: bool
    ) -> None:
        """Write the status where the sync can do nothing else."""
        await self._placements.prepare(daemon_set, self._nodes.store)
        await self._report(self._read(daemon_set, pods, ""), selector, pods, observed=observed)

    async def _report(
        self, snapshot: Snapshot, selector: Selector, pods: Sequence[Pod], *, observed: bool
    ) -> float | None:
        """Write the status if it differs. Returns the seconds until a pod may become available, or None."""
        daemon_set = snapshot.daemon_set
        now = self._clock.now()
        present = self._latest(daemon_set, selector, pods)
        same = len(present) == len(pods) and all(map(is_, present, pods))
        latest = snapshot if same else replace(snapshot, pods=_on_nodes(present))
        new = status(latest, now, observed=observed)
        if new != daemon_set.status and not self._reported_just_now(daemon_set, new):
            changes = status_changes(new, always=ALWAYS)
            try:
                await writes.put_status(self._client, DAEMON_SETS, daemon_set, changes)
            except RequestError as error:
                fields = {"daemonSet": kobj(daemon_set), "err": str(error)}
                log.error("Failed to update status", extra={"fields": fields})
                raise
        min_ready_s, on_nodes = daemon_set.spec.min_ready_seconds, latest.pods.values()
        if new.number_ready != new.number_available:
            return pod_rules.next_check_s(chain.from_iterable(on_nodes), min_ready_s, now)
        beside = chain.from_iterable(pods for pods in on_nodes if len(pods) > 1)  # of which the status counts one
        return pod_rules.next_available_s(beside, min_ready_s, now)

    def _reported_just_now(self, daemon_set: DaemonSet, new: DaemonSetStatus) -> bool:
        """Whether to leave the status to a later sync, because it was written a short time ago.

        The pause grows with the number of pods. The key is requeued for its end.
        """
        now, old = self._clock.monotonic(), daemon_set.status
        pods = max(new.desired_number_scheduled, old.current_number_scheduled + old.number_misscheduled)
        left = self._reported.get(daemon_set.key, -math.inf) + min(REPORT_PAUSE_S, pods * REPORT_PAUSE_PER_POD_S) - now
        if left > 0:
            self._queue.add_after(daemon_set.key, left)
            return True
        self._reported[daemon_set.key] = now
        return False

    def _refuse_everything(self, daemon_set: DaemonSet) -> None:
        text = "This daemon set is selecting all pods. A non-empty selector is required."
        self._recorder.emit(Notice(ref_to(DAEMON_SETS, daemon_set), "Warning", "SelectingAll", text))

    # -- events

    def deleted(self, daemon_set: DaemonSet) -> Keys:
        """Forget the DaemonSet, and queue its key."""
        self._forget(daemon_set.key)
        return (daemon_set.key,)

    def _forget(self, key: str) -> None:
        """Forget the DaemonSet. The sync that finds it deleted calls this again, since an earlier sync may have stored
        something."""
        self._expectations.forget(key)
        self._placements.forget(key)
        self._reported.pop(key, None)

    def node_updated(self, old: Node, new: Node) -> Keys:
        """The node's name, if its labels or taints changed."""
        return () if same_to_daemons(old, new) else (new.name,)

    def node_deleted(self, node: Node) -> Keys:
        """Forget the node. Its name, if a pod waits for it; its other pods are the garbage collector's."""
        self._placements.forget_node(node)
        return (node.name,) if self._pods.store.count(WAITING, node.name) else ()

    def _controller_key(self, pod: Pod) -> str:
        """The key of the DaemonSet that controls a pod; empty if there is none."""
        ref = controller_of(pod)
        return f"{pod.namespace}/{ref.name}" if ref is not None and ref.kind == DAEMON_SETS.kind else ""


def _on_nodes(pods: Iterable[Pod]) -> Mapping[str, Sequence[Pod]]:
    """The pods by node, without terminal pods that are being deleted."""
    return pods_by_node(pod for pod in pods if not (pod.deleting and pod_rules.is_terminal(pod)))


def _backoff_key(daemon_set: DaemonSet, node: str) -> str:
    return f"{daemon_set.uid}/{daemon_set.status.observed_generation}/{node}"


def _log_failures(daemon_set: DaemonSet, outcome: Outcome) -> None:
    fields: dict[str, object] = {"daemonset": kobj(daemon_set)}
    for failure in outcome.failed:
        made = isinstance(failure.action, Create)
        log.log(V2, _NOT_CREATED if made else _NOT_DELETED, extra={"fields": fields})
    if outcome.skipped:
        log.log(V2, _SKIPPED, extra={"fields": {"skippedPods": len(outcome.skipped), **fields}})


CONTROLLER = Controller(
    DaemonSetController,
    (
        Queue(
            "daemonset",
            Watch(DAEMON_SETS, own_key, deleted=DaemonSetController.deleted),
            owns=(
                Owns(PODS, updated=when_available(SKEW_S), matters=matters),
                Owns(CONTROLLER_REVISIONS, expected=False),
            ),
            sync=DaemonSetController.sync,
            failures=unhandled("{key} failed with : {error}"),
            workers=DaemonSetConfig,
            writes=(DAEMON_SETS, PODS, CONTROLLER_REVISIONS),
            stale_gate="StaleControllerConsistencyDaemonSet",
        ),
        Queue(
            "daemonset-node-updates",
            Watch(
                NODES, added=own_key, updated=DaemonSetController.node_updated, deleted=DaemonSetController.node_deleted
            ),
            sync=DaemonSetController.sync_node,
            failures=unhandled("{key} failed with : {error}"),
            workers=DaemonSetConfig,
        ),
    ),
    passes=(Periodic(DaemonSetController.collect, pause_s=lambda controller: COLLECT_PERIOD_S, delayed=True),),
    announces=starting("daemon sets controller"),
)
