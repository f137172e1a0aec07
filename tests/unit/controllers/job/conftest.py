"""Jobs and pods as documents, and a snapshot of them."""

from collections.abc import Callable, Iterable
from typing import Any

import pytest

from kcm_cli.api.batch import JOBS, Job
from kcm_cli.api.core import PODS, Pod
from kcm_cli.machinery import codec

START = "2026-01-02T03:00:00Z"
FINALIZER = "batch.kubernetes.io/job-tracking"
INDEX = "batch.kubernetes.io/job-completion-index"

MakeJob = Callable[..., Job]
MakePod = Callable[..., Pod]


@pytest.fixture
def make_job() -> MakeJob:
    """A Job of one pod that has started; ``spec`` and ``status`` change or remove (None) fields."""

    def make(status: dict[str, Any] | None = None, metadata: dict[str, Any] | None = None, **spec: Any) -> Job:
        template = {
            "metadata": {"labels": {"app": "a"}},
            "spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]},
        }
        full: dict[str, Any] = {
            "parallelism": 1,
            "completions": 1,
            "completionMode": "NonIndexed",
            "backoffLimit": 6,
            "suspend": False,
            "podReplacementPolicy": "TerminatingOrFailed",
            "selector": {"matchLabels": {"app": "a"}},
            "template": template,
        }
        for name, value in spec.items():
            full[name] = value
        doc = {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "metadata": {"name": "work", "namespace": "ns", "uid": "job-uid", "resourceVersion": "1"}
            | (metadata or {}),
            "spec": {name: value for name, value in full.items() if value is not None},
            "status": {"startTime": START, "ready": 0, "terminating": 0, "uncountedTerminatedPods": {}}
            | (status or {}),
        }
        return JOBS.decode(codec.encode(doc))

    return make


@pytest.fixture
def make_pod() -> MakePod:
    """A pod of that Job. ``index``: of an Indexed Job. ``deleting``: since when. ``exit_code``, ``ended``: of its
    one container."""

    def make(
        name: str,
        phase: str = "Running",
        *,
        index: int | str | None = None,
        ready: bool = False,
        finalizers: Iterable[str] = (FINALIZER,),
        deleting: str = "",
        exit_code: int | None = None,
        ended: str = START,
        conditions: Iterable[dict[str, str]] = (),
        annotations: dict[str, str] | None = None,
        restarts: int = 0,
        node: str = "n1",
        owner: str = "job-uid",
        created: str = START,
    ) -> Pod:
        notes = dict(annotations or {})
        if index is not None:
            notes[INDEX] = str(index)
        metadata: dict[str, Any] = {
            "name": name,
            "namespace": "ns",
            "uid": f"uid-{name}",
            "labels": {"app": "a"},
            "annotations": notes,
            "finalizers": list(finalizers),
            "creationTimestamp": created,
        }
        if owner:
            metadata["ownerReferences"] = [{"kind": "Job", "name": "work", "uid": owner, "controller": True}]
        if deleting:
            metadata |= {"deletionTimestamp": deleting, "deletionGracePeriodSeconds": 30}
        container: dict[str, Any] = {"name": "c", "restartCount": restarts}
        if exit_code is not None:
            container["state"] = {"terminated": {"exitCode": exit_code, "finishedAt": ended}}
        shown = [*conditions, {"type": "Ready", "status": "True" if ready else "False", "lastTransitionTime": ended}]
        doc = {
            "metadata": metadata,
            "spec": {"nodeName": node},
            "status": {"phase": phase, "conditions": shown, "containerStatuses": [container]},
        }
        return PODS.decode(codec.encode(doc))

    return make
