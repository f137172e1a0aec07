"""deployment-controller: rolls Deployments out by way of ReplicaSets.

upstream: pkg/controller/deployment
"""

import logging
from collections.abc import Sequence

from kcm_cli.api.apps import DEPLOYMENTS, REPLICA_SETS, Deployment, ReplicaSet
from kcm_cli.api.core import PODS, Pod
from kcm_cli.component.logs import V2
from kcm_cli.controllers.deployment.config import DeploymentConfig
from kcm_cli.controllers.deployment.plan import Report, Rollout, next_check_s, plan, spec, start, status, unobserved
from kcm_cli.controllers.deployment.plan.rollout import Snapshot
from kcm_cli.controllers.deployment.plan.spec import same_template
from kcm_cli.engine import writes
from kcm_cli.engine.claiming import RefManager
from kcm_cli.engine.context import ControllerContext
from kcm_cli.engine.controller import Controller, Keys, Owns, Queue, Watch, starting
from kcm_cli.engine.dependents import living_owner
from kcm_cli.engine.worker import Failures
from kcm_cli.machinery.kref import kobj, kref
from kcm_cli.machinery.labels import from_label_selector
from kcm_cli.planning.actions import Create, Notice, Outcome, Path, Update, Value, ref_to
from kcm_cli.planning.pod_template import UnselectedTemplate
from kcm_cli.planning.pods import is_terminal
from kcm_cli.planning.status import status_changes
from kcm_cli.rest.errors import AlreadyExists, Conflict, namespace_terminating
from kcm_cli.runtime.store import CONTROLLER_UID, by_controller, claimable, controlled_by

log = logging.getLogger(__name__)

MAX_RETRIES = 15
"""A key that fails this often is dropped until its next change, as upstream does."""


class DeploymentController:
    """Reads a Deployment with its ReplicaSets, plans, executes the plan, and writes the status once."""

    def __init__(self, context: ControllerContext) -> None:
        self._clock = context.clock
        self._client = context.client
        self._recorder = context.recorder
        self._reports_terminating = context.gates.enabled("DeploymentReplicaSetTerminatingReplicas")
        self._executor = context.executor()
        (self._queue,) = context.queues
        self._refs = RefManager(self._executor, DEPLOYMENTS, REPLICA_SETS)
        self._deployments = context.cache(DEPLOYMENTS)
        self._replica_sets = context.cache(REPLICA_SETS)
        self._pods = context.cache(PODS)
        self._replica_sets.store.add_index(CONTROLLER_UID, by_controller)
        self._pods.store.add_index(CONTROLLER_UID, by_controller)

    async def sync(self, key: str) -> None:
        deployment = self._deployments.store.get(key)
        if deployment is None:
            log.log(V2, "Deployment has been deleted", extra={"fields": {"deployment": kref(key)}})
            return
        selector = from_label_selector(deployment.spec.selector)
        if selector.empty:
            await self._refuse_everything(deployment)
            return
        if not selector.selectable:
            raise UnselectedTemplate  # where another selector leaves it out, the API server refuses the ReplicaSet
        claimed = await self._refs.claim(deployment, selector, claimable(self._replica_sets.store, deployment))
        snapshot = self._read(deployment, claimed.members)
        if claimed.error is not None:
            await self._write_status(deployment, unobserved(start(snapshot), self._clock.now()))
            raise claimed.error
        await self._reconcile(snapshot)

    def _read(self, deployment: Deployment, owned: Sequence[ReplicaSet]) -> Snapshot:
        running: dict[str, int] = {}
        if deployment.spec.strategy.type == spec.RECREATE:
            for replica_set in owned:
                pods = controlled_by(self._pods.store, deployment.namespace, replica_set.uid)
                running[replica_set.uid] = sum(not is_terminal(pod) for pod in pods)
        return Snapshot(deployment, tuple(owned), running, self._reports_terminating)

    async def _reconcile(self, snapshot: Snapshot) -> None:
        rollout = plan(snapshot, self._clock.now())
        outcome = await self._execute(rollout)
        if outcome.error is not None:
            if namespace_terminating(outcome.error):
                return
            if all(isinstance(failure.error, Conflict) for failure in outcome.failed):
                raise outcome.error  # the next sync sees the change
        now = self._clock.now()
        report = status(rollout, outcome, now)
        if report is not None:
            await self._write_status(snapshot.deployment, report)
            unchanged = report.status == snapshot.deployment.status
            created = not any(isinstance(failure.action, Create) for failure in outcome.failed)
            check_s = next_check_s(rollout, report.status, now) if unchanged and created else None
            if check_s is not None:
                self._queue.add_after(snapshot.deployment.key, check_s)  # also if a write failed, since its retries end
        if outcome.error is not None:
            raise outcome.error

    async def _execute(self, rollout: Rollout) -> Outcome:
        """Execute the plan. If the new ReplicaSet exists already, the cache is stale, and the sync is retried."""
        outcome = await self._executor.run(rollout.stages)
        failure = outcome.failed[0] if outcome.failed else None
        if failure is None or not isinstance(failure.action, Create) or rollout.new is None:
            return outcome
        name = rollout.new.name
        if isinstance(failure.error, AlreadyExists):
            existing = self._replica_sets.store.get(f"{rollout.snapshot.deployment.namespace}/{name}")
            if existing is None or self._is_new(rollout.snapshot.deployment, existing):
                raise failure.error  # the cache is stale: retry, without counting a collision
            before = rollout.status.collision_count or 0
            fields = {
                "deployment": kobj(rollout.snapshot.deployment),
                "oldCollisionCount": before,
                "newCollisionCount": before + 1,
            }
            text = "Found a hash collision for deployment - bumping collisionCount to resolve it"
            log.log(V2, text, extra={"fields": fields})
        elif not namespace_terminating(failure.error):
            message = f'Failed to create new replica set "{name}": {failure.error}'
            ref = ref_to(DEPLOYMENTS, rollout.snapshot.deployment)
            self._recorder.emit(Notice(ref, "Warning", spec.CREATE_ERROR, message))
        return outcome

    async def _write_status(self, deployment: Deployment, report: Report) -> None:
        changes: dict[Path, Value] = {}
        if report.status != deployment.status:
            changes.update(status_changes(report.status))
        if report.annotations != deployment.annotations:
            changes[("metadata", "annotations")] = report.annotations
        if changes:
            await writes.send(self._client, Update(DEPLOYMENTS, deployment, changes, "status"))

    async def _refuse_everything(self, deployment: Deployment) -> None:
        text = "This deployment is selecting all pods. A non-empty selector is required."
        self._recorder.emit(Notice(ref_to(DEPLOYMENTS, deployment), "Warning", "SelectingAll", text))
        generation = deployment.metadata.generation
        if deployment.status.observed_generation < generation:
            changes: dict[Path, Value] = {("status", "observedGeneration"): generation}
            await writes.send(self._client, Update(DEPLOYMENTS, deployment, changes, "status"))

    def _is_new(self, deployment: Deployment, existing: ReplicaSet) -> bool:
        owner = self._owner_of(existing)
        same = owner is not None and owner.uid == deployment.uid
        return same and same_template(existing.spec.template, deployment.spec.template)

    def ended(self, old: Pod, new: Pod) -> Keys:
        """The key of a Recreate Deployment, when the last pod of a ReplicaSet has ended."""
        return self.owner_of_last_pod(new) if is_terminal(new) and not is_terminal(old) else ()

    def owner_of_last_pod(self, pod: Pod) -> Keys:
        """The key of a Recreate Deployment, when no pod of this one's ReplicaSet runs any more, so that new pods can be
        created. Upstream waits for the last pod of all ReplicaSets, and counts pods that have ended."""
        replica_set = living_owner(REPLICA_SETS.kind, self._replica_sets.store, pod)
        deployment = self._owner_of(replica_set) if replica_set is not None else None
        if replica_set is None or deployment is None or deployment.spec.strategy.type != spec.RECREATE:
            return ()
        pods = self._pods.store.by_index(CONTROLLER_UID, replica_set.uid)
        runs = any(one.namespace == pod.namespace and not is_terminal(one) for one in pods)
        return () if runs else (deployment.key,)

    def _owner_of(self, replica_set: ReplicaSet) -> Deployment | None:
        return living_owner(DEPLOYMENTS.kind, self._deployments.store, replica_set)


CONTROLLER = Controller(
    DeploymentController,
    Queue(
        "deployment",
        DEPLOYMENTS,
        owns=(Owns(REPLICA_SETS),),
        watches=(Watch(PODS, updated=DeploymentController.ended, deleted=DeploymentController.owner_of_last_pod),),
        sync=DeploymentController.sync,
        failures=Failures(
            retried="Error syncing deployment",
            level=V2,
            dropped="Dropping deployment out of the queue",
            dropped_level=V2,
            key="deployment",
            ref=True,
        ),
        writes=(DEPLOYMENTS, REPLICA_SETS),
        workers=DeploymentConfig,
        retries=MAX_RETRIES,
    ),
    announces=starting("controller", controller="deployment"),
)
