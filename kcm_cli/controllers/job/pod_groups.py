"""Finds or creates the PodGroup for the pods of a Job (gate WorkloadWithJob).

Guarantee: in an unclear case (several PodGroups, one that the Job does not control, one that another client changed)
the pods are created without a group.

upstream: pkg/controller/job/job_scheduling_manager.go#ensureWorkloadAndPodGroup
"""

import logging
from collections.abc import Sequence
from typing import TypeVar

from kcm_cli.api.batch import JOBS, Job
from kcm_cli.api.core import Pod
from kcm_cli.api.scheduling import POD_GROUPS, WORKLOADS, Workload
from kcm_cli.component.logs import V2
from kcm_cli.controllers.job.plan import gang
from kcm_cli.engine.context import ControllerContext
from kcm_cli.machinery.kref import kobj
from kcm_cli.machinery.meta import Object, controller_of
from kcm_cli.planning.actions import Notice, ref_to

log = logging.getLogger(__name__)
T = TypeVar("T", bound=Object)
_UNSUPPORTED = "Workload has unsupported number of PodGroupTemplates, falling back to default scheduling"
_OWNER = "owner by name"
"""Index of Workloads by the key of their Job, and of PodGroups by the key of their Workload."""


class PodGroups:
    """The Workloads and PodGroups of Jobs."""

    def __init__(self, context: ControllerContext) -> None:
        self._recorder = context.recorder
        workloads, groups = context.cache(WORKLOADS), context.cache(POD_GROUPS)
        workloads.store.add_index(_OWNER, lambda workload: (gang.job_of(workload),))
        groups.store.add_index(_OWNER, lambda group: (gang.workload_key_of(group),))
        self._client = context.client
        self._workloads, self._groups = workloads.store, groups.store

    async def group_of(self, job: Job, pods: Sequence[Pod]) -> str | None:
        """The name of the PodGroup for the Job's pods; None if they are scheduled one by one. Raises ApiError."""
        if not gang.is_gang(job):
            return None
        workload = await self._workload(job, pods)
        if workload is None:
            return None
        found = self._groups.by_index(_OWNER, workload.key)
        if not found:
            body = gang.pod_group_of(job, workload)
            return (await self._client.create(POD_GROUPS, job.namespace, body, reason="job is a gang")).name
        group = _own(job, found)
        if group is None:
            fields = {"job": kobj(job), "workload": kobj(workload), "podGroup": kobj(found[0])}
            log.log(V2, "PodGroup not owned by this Job, skipping workload integration", extra={"fields": fields})
        return None if group is None else group.name

    async def _workload(self, job: Job, pods: Sequence[Pod]) -> Workload | None:
        found = self._workloads.by_index(_OWNER, job.key)
        if found:
            workload = _own(job, found)
            if workload is None:
                fields = {"job": kobj(job), "workload": kobj(found[0])}
                log.log(V2, "Workload not owned by this Job, skipping workload integration", extra={"fields": fields})
            elif (count := len(workload.spec.pod_group_templates)) != 1:
                more = {"job": kobj(job), "workload": kobj(workload), "count": count}
                log.log(V2, _UNSUPPORTED, extra={"fields": more})
                return None
            return workload
        if not gang.is_new(job, pods):
            return None
        made = await self._client.create(WORKLOADS, job.namespace, gang.workload_of(job), reason="job is a gang")
        text = f"Created Workload {made.name} for Job {job.name}"
        self._recorder.emit(Notice(ref_to(JOBS, job), "Normal", "WorkloadCreated", text))
        return made


def _own(job: Job, found: Sequence[T]) -> T | None:
    """The only object found, if the Job controls it."""
    if len(found) > 1:
        names = sorted(obj.name for obj in found)
        fields = {"job": job.key, "found": names}
        log.warning("Pods are scheduled one by one: there should be one for the Job", extra={"fields": fields})
        return None
    ref = controller_of(found[0])
    return found[0] if ref is not None and ref.uid == job.uid else None
