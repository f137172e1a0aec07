"""The pods that a Job creates.

upstream: pkg/controller/job/job_controller.go#manageJob, indexed_job_utils.go
"""

from collections.abc import Iterable, Sequence

from kcm_cli.api.batch import JOBS, Job, template_of
from kcm_cli.controllers.job.plan import policies, spec
from kcm_cli.controllers.job.plan.pods import JobPod, failure_counts, name_prefix
from kcm_cli.controllers.job.plan.state import JobState
from kcm_cli.machinery import codec
from kcm_cli.machinery.codec import Doc
from kcm_cli.machinery.documents import nested_list, nested_map, nested_str
from kcm_cli.planning.actions import Create, ref_to
from kcm_cli.planning.pod_control import create_pod
from kcm_cli.planning.pod_template import pod_from_template

_FIELD_PATH = f"metadata.labels['{spec.COMPLETION_INDEX}']"


def creations(state: JobState, count: int, indexes: Sequence[int] | None) -> tuple[Create, ...]:
    """Actions that create ``count`` pods, or one pod for each of ``indexes``."""
    job = state.job
    pod = pod_from_template(template_of(job), JOBS, job)
    metadata = nested_map(pod, "metadata")
    metadata["finalizers"] = _with_finalizer(metadata.get("finalizers"))
    group = state.snapshot.pod_group
    if group is not None:
        pod["spec"] = {**nested_map(pod, "spec"), "schedulingGroup": {"podGroupName": group}}
    ref = ref_to(JOBS, job)
    if indexes is None:
        return (create_pod(ref, job.namespace, codec.encode(pod), "too few active pods"),) * count
    pod["spec"] = _with_index_variable(nested_map(pod, "spec"))
    bodies = ((index, codec.encode(_for_index(state, pod, index))) for index in indexes)
    return tuple(create_pod(ref, job.namespace, body, f"index {index} has no pod") for index, body in bodies)


def _for_index(state: JobState, pod: Doc, index: int) -> Doc:
    job = state.job
    number = str(index)
    metadata = nested_map(pod, "metadata")
    annotations = {**nested_map(metadata, "annotations"), spec.COMPLETION_INDEX: number}
    if spec.counts_per_index(job):
        annotations.update(_failure_annotations(job, state.delayed.get(index)))
    own = {
        "generateName": name_prefix(job.name, index),
        "labels": {**nested_map(metadata, "labels"), spec.COMPLETION_INDEX: number},
        "annotations": annotations,
    }
    return {
        **pod,
        "metadata": {**metadata, **own},
        "spec": {**nested_map(pod, "spec"), "hostname": f"{job.name}-{number}"},
    }


def _failure_annotations(job: Job, replaced: JobPod | None) -> dict[str, str]:
    """The annotations for the replacement of a failed pod: the failures of its index, including this one."""
    if replaced is None:
        return {spec.INDEX_FAILURES: "0"}
    counted, ignored = failure_counts(replaced.pod)
    if policies.match(job.spec.pod_failure_policy, replaced.pod).counts:
        counted += 1
    else:
        ignored += 1
    annotations = {spec.INDEX_FAILURES: str(counted)}
    if ignored > 0:
        annotations[spec.INDEX_IGNORED_FAILURES] = str(ignored)
    return annotations


def _with_finalizer(finalizers: object) -> list[object]:
    known = list(finalizers) if isinstance(finalizers, Iterable) else []
    return known if spec.TRACKING_FINALIZER in known else [*known, spec.TRACKING_FINALIZER]


def _with_index_variable(pod_spec: Doc) -> Doc:
    """The pod spec whose containers have JOB_COMPLETION_INDEX, unless they define that variable themselves."""
    result = dict(pod_spec)
    for field in ("initContainers", "containers"):
        containers = pod_spec.get(field)
        if isinstance(containers, list):
            result[field] = [_with_variable(container) for container in containers]
    return result


def _with_variable(container: Doc) -> Doc:
    known = nested_list(container, "env")
    if any(nested_str(entry, "name") == spec.COMPLETION_INDEX_ENV for entry in known):
        return container
    variable = {"name": spec.COMPLETION_INDEX_ENV, "valueFrom": {"fieldRef": {"fieldPath": _FIELD_PATH}}}
    return {**container, "env": [*known, variable]}
