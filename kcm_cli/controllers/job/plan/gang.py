"""The Workload and the PodGroup of a Job whose pods are scheduled together (gang scheduling).

Names are computed as upstream does, so that objects which kube-controller-manager created are found.

upstream: pkg/controller/job/job_scheduling_manager.go (gate WorkloadWithJob, alpha)
Pods get no owner reference to their PodGroup, as with upstream: it puts one into the pod template, from where
it is never copied.
"""

from collections.abc import Sequence

from kcm_cli.api.batch import JOBS, Job
from kcm_cli.api.core import Pod
from kcm_cli.api.scheduling import POD_GROUPS, WORKLOADS, PodGroup, Workload
from kcm_cli.controllers.job.plan import spec
from kcm_cli.machinery.codec import Doc
from kcm_cli.machinery.hashes import fnv32a, safe_encode
from kcm_cli.machinery.names import SUBDOMAIN_MAX
from kcm_cli.planning.conditions import find
from kcm_cli.planning.pod_template import controller_ref


def is_gang(job: Job) -> bool:
    """Whether the Job's pods are scheduled together: an Indexed Job with as many completions as parallel pods (2 or
    more), whose template names no scheduling group."""
    parallelism = spec.parallelism(job)
    together = parallelism > 1 and job.spec.completions == parallelism
    return together and spec.is_indexed(job) and job.spec.template.spec.scheduling_group is None


def is_new(job: Job, pods: Sequence[Pod]) -> bool:
    """Whether the Job has never started. Jobs that started before the gate was on get no Workload."""
    status = job.status
    started = pods or status.start_time is not None or status.succeeded or status.failed
    return not started and find(status.conditions, spec.SUSPENDED) is None


def workload_of(job: Job) -> Doc:
    """The body of the Job's Workload."""
    template = {"name": f"{job.name}-pgt-0", "schedulingPolicy": {"gang": {"minCount": spec.parallelism(job)}}}
    return {
        "apiVersion": WORKLOADS.api_version,
        "kind": WORKLOADS.kind,
        "metadata": {
            "name": workload_name(job),
            "namespace": job.namespace,
            "ownerReferences": [controller_ref(JOBS, job)],
        },
        "spec": {
            "controllerRef": {"apiGroup": JOBS.gvr.group, "kind": JOBS.kind, "name": job.name},
            "podGroupTemplates": [template],
        },
    }


def pod_group_of(job: Job, workload: Workload) -> Doc:
    """The body of the PodGroup for the only template of a Workload."""
    template = workload.spec.pod_group_templates[0]
    owner = {
        "apiVersion": WORKLOADS.api_version,
        "kind": WORKLOADS.kind,
        "name": workload.name,
        "uid": workload.uid,
    }
    reference = {"workloadName": workload.name, "podGroupTemplateName": template.name}
    return {
        "apiVersion": POD_GROUPS.api_version,
        "kind": POD_GROUPS.kind,
        "metadata": {
            "name": pod_group_name(workload.name, template.name),
            "namespace": job.namespace,
            "ownerReferences": [controller_ref(JOBS, job), owner],
        },
        "spec": {
            "podGroupTemplateRef": {"workload": reference},
            "schedulingPolicy": template.scheduling_policy,
        },
    }


def workload_name(job: Job) -> str:
    suffix = _hash(f"(types.UID){job.uid}")
    return f"{job.name[: SUBDOMAIN_MAX - len(suffix) - 1]}-{suffix}"


def pod_group_name(workload: str, template: str) -> str:
    """``workload-template-hash``. If that is too long, the longer of the two names is cut, or both are cut to half."""
    suffix = _hash(workload + template)
    room = SUBDOMAIN_MAX - len(suffix) - 2
    if len(workload) + len(template) > room:
        half = room // 2
        if len(workload) <= half:
            template = template[: room - len(workload)]
        elif len(template) <= half:
            workload = workload[: room - len(template)]
        else:
            workload, template = workload[: room - half], template[:half]
    return f"{workload}-{template}-{suffix}"


def job_of(workload: Workload) -> str:
    """The key of the Job in a Workload's controllerRef; empty if there is none."""
    ref = workload.spec.controller_ref
    if ref is None or (ref.api_group, ref.kind) != (JOBS.gvr.group, JOBS.kind) or not ref.name:
        return ""
    return f"{workload.namespace}/{ref.name}"


def workload_key_of(group: PodGroup) -> str:
    """The key of the Workload that a PodGroup refers to; empty if there is none."""
    ref = group.spec.pod_group_template_ref
    name = ref.workload.workload_name if ref is not None and ref.workload is not None else ""
    return f"{group.namespace}/{name}" if name else ""


def _hash(text: str) -> str:
    return safe_encode(str(fnv32a(text.encode())))
