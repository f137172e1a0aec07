"""Executes the steps of a StatefulSet's pods: writes pods and claims, and emits Events about them.

A module of its own, since a step is more than one write: claims are created before the pod that needs them, their
owners are updated after it, and one Event covers the step.

upstream: pkg/controller/statefulset/stateful_pod_control.go, stateful_set_control.go
"""

from collections.abc import Sequence
from typing import assert_never

from kcm_cli.api.apps import STATEFUL_SETS, StatefulSet
from kcm_cli.api.core import PERSISTENT_VOLUME_CLAIMS, PODS, PersistentVolumeClaim
from kcm_cli.controllers.statefulset.plan.claims import ClaimWork, Ownership
from kcm_cli.controllers.statefulset.plan.decide import (
    CreateClaims,
    CreatePod,
    DeletePod,
    OwnClaims,
    PodSteps,
    Step,
    UpdatePod,
)
from kcm_cli.controllers.statefulset.plan.identity import ordinal_of, pod_name
from kcm_cli.controllers.statefulset.plan.pod import repaired
from kcm_cli.engine import writes
from kcm_cli.engine.door import Door
from kcm_cli.engine.execute import Recorder
from kcm_cli.machinery import codec
from kcm_cli.machinery.codec import Doc
from kcm_cli.machinery.documents import nested_str
from kcm_cli.machinery.errors import SyncError, aggregated
from kcm_cli.machinery.meta import Object
from kcm_cli.planning.actions import ABSENT, Action, Create, Delete, Notice, Path, Update, Value, ref_to
from kcm_cli.rest.errors import AlreadyExists, NotFound, namespace_terminating
from kcm_cli.rest.transport import RequestError

UPDATE_ATTEMPTS = 4


class ClaimsError(SyncError):
    """Claims of a pod could not be created or updated. The text has all the reasons."""


class ClaimsTerminating(ClaimsError):
    """Claims of a pod are being deleted, and no other could not be created."""


STEP_ERRORS = (RequestError, ClaimsError)
"""How a step may end."""

ALONE = (AlreadyExists, ClaimsTerminating)
"""Errors that say nothing about other pods."""


class PodControl:
    """Writes the pods and claims of StatefulSets. upstream: StatefulPodControl."""

    def __init__(self, client: Door, recorder: Recorder) -> None:
        self._client = client
        self._recorder = recorder

    async def send(self, action: Action) -> Object | None:
        """Send an action: the steps of a pod, or a single write."""
        if not isinstance(action, PodSteps):
            return await writes.send(self._client, action)
        for step in action.steps:
            await self._step(action.set, step)
        return None

    async def _step(self, set_: StatefulSet, step: Step) -> None:
        match step:
            case CreatePod():
                await self._create(set_, step)
            case DeletePod():
                await self._delete(set_, step)
            case CreateClaims(pod, claims):
                await self._create_claims(set_, pod.name, claims)
                await self._own_or_emit(set_, pod.name, claims.ownership)
            case OwnClaims(_, ownership):
                await self._own(set_, ownership)
            case UpdatePod():
                await self._update(set_, step)
            case _:
                assert_never(step)

    # -- pods

    async def _create(self, set_: StatefulSet, step: CreatePod) -> None:
        try:
            await self._create_claims(set_, step.name, step.claims)
        except ClaimsError as error:
            self._emit_pod(set_, "Create", step.name, error)
            raise
        failure: Exception | None = None
        try:
            body = codec.encode(step.body)
            await writes.send(self._client, Create(PODS, set_.namespace, body, reason="ordinal has no pod"))
        except AlreadyExists:
            raise  # another controller's pod, or ours in an old cache: upstream emits no Event
        except RequestError as error:
            failure = error
        await self._own_or_emit(set_, step.name, step.claims.ownership)
        self._emit_pod(set_, "Create", step.name, failure)
        if failure is not None:
            raise failure

    async def _delete(self, set_: StatefulSet, step: DeletePod) -> None:
        """Delete a pod. One that is gone is a success for upstream's Event, too."""
        pod = step.pod
        delete = Delete(PODS, pod.namespace, pod.name, uid=pod.uid, reason=step.reason, remark=step.remark)
        try:
            await writes.send(self._client, delete)
        except NotFound:
            pass
        except RequestError as error:
            self._emit_pod(set_, "Delete", pod.name, error)
            raise
        self._emit_pod(set_, "Delete", pod.name, None)

    async def _update(self, set_: StatefulSet, step: UpdatePod) -> None:
        """Restore the pod of the canonical name and its claims: for ``db-01`` that is ``db-1``."""
        name = pod_name(set_, ordinal_of(step.pod))
        try:
            await self._create_claims(set_, name, step.claims)
            await self._own(set_, step.claims.ownership)
            if step.pod_differs:
                await self._update_pod(set_, name, step.pod.uid)
        except STEP_ERRORS as error:
            self._emit_pod(set_, "Update", name, error)
            raise
        self._emit_pod(set_, "Update", name, None)

    async def _update_pod(self, set_: StatefulSet, name: str, uid: str) -> None:

        async def update() -> None:
            doc = await self._client.get_doc(PODS, set_.namespace, name)
            if nested_str(doc, "metadata", "uid") == uid:
                await self._client.update(
                    PODS, set_.namespace, name, repaired(set_, doc), reason="identity or storage differs"
                )

        await writes.retry_on(writes.Retries(UPDATE_ATTEMPTS), update)

    # -- claims

    async def _create_claims(self, set_: StatefulSet, pod: str, work: ClaimWork) -> None:
        """Create the missing claims. Raises ClaimsError with all the reasons."""
        problems = [f"pvc {name} is being deleted" for name in work.terminating]
        for body in work.missing:
            name = nested_str(body, "metadata", "name")
            error = await self._create_claim(set_, body)
            if error is not None:
                problems.append(f"failed to create PVC {name}: {error}")
            if not isinstance(error, AlreadyExists):
                self._emit_claim(set_, name, pod, error)
        if problems:
            kind = ClaimsTerminating if len(problems) == len(work.terminating) else ClaimsError
            raise kind(aggregated(problems))

    async def _create_claim(self, set_: StatefulSet, body: Doc) -> Exception | None:
        try:
            await self._client.create(PERSISTENT_VOLUME_CLAIMS, set_.namespace, body, reason="pod lacks the claim")
        except RequestError as error:
            return error
        return None

    async def _own_or_emit(self, set_: StatefulSet, pod: str, ownership: Sequence[Ownership]) -> None:
        try:
            await self._own(set_, ownership)
        except ClaimsError as error:
            self._emit_pod(set_, "Update", pod, error)
            raise

    async def _own(self, set_: StatefulSet, ownership: Sequence[Ownership]) -> None:
        """Write the owners of claims. Raises ClaimsError."""
        for one in ownership:
            if one.conflicting:
                self._emit_conflict(set_, one.claim)
            if one.references is None:
                continue
            value: Value = list(one.references) if one.references else ABSENT
            changes: dict[Path, Value] = {("metadata", "ownerReferences"): value}
            try:
                reason = "owners by persistentVolumeClaimRetentionPolicy"
                update = Update(PERSISTENT_VOLUME_CLAIMS, one.claim, changes, reason=reason)
                await writes.send(self._client, update)
            except RequestError as error:
                text = f"could not update claim {one.claim.name} for delete policy ownerRefs: {error}"
                raise ClaimsError(text) from error

    # -- events

    def _emit_pod(self, set_: StatefulSet, verb: str, pod: str, error: Exception | None) -> None:
        subject = f"{verb} Pod {pod} in StatefulSet {set_.name}"
        if error is None:
            self._emit(set_, f"Successful{verb}", f"{subject} successful")
        elif not namespace_terminating(error):  # no Event can be created there either
            self._emit(set_, f"Failed{verb}", f"{subject} failed error: {error}", warning=True)

    def _emit_claim(self, set_: StatefulSet, claim: str, pod: str, error: Exception | None) -> None:
        if error is None:
            text = f"Create Claim {claim} Pod {pod} in StatefulSet {set_.name} success"
            self._emit(set_, "SuccessfulCreate", text)
        else:
            text = f"Create Claim {claim} for Pod {pod} in StatefulSet {set_.name} failed error: {error}"
            self._emit(set_, "FailedCreate", text, warning=True)

    def _emit_conflict(self, set_: StatefulSet, claim: PersistentVolumeClaim) -> None:
        text = (
            f"PersistentVolumeClaim {claim.name} has a conflicting OwnerReference that acts as a manging controller, "
            "the retention policy is ignored for this claim"
        )
        self._emit(set_, "ConflictingController", text, warning=True)

    def _emit(self, set_: StatefulSet, reason: str, message: str, *, warning: bool = False) -> None:
        ref = ref_to(STATEFUL_SETS, set_)
        self._recorder.emit(Notice(ref, "Warning" if warning else "Normal", reason, message))
