"""CronJobs and their Jobs as documents."""

from collections.abc import Callable
from typing import Any

import pytest

from kcm_cli.api.batch import CRON_JOBS, JOBS, CronJob, Job
from kcm_cli.machinery import codec

CREATED = "2026-01-01T00:00:00Z"


@pytest.fixture
def make_cron_job() -> Callable[..., CronJob]:
    """A CronJob; ``spec`` changes fields, ``active`` lists names of running Jobs (uid-NAME)."""

    def make(
        schedule: str = "0 * * * *", *, last: str | None = None, active: tuple[str, ...] = (), **spec: Any
    ) -> CronJob:
        entries = [{"kind": "Job", "namespace": "ns", "name": name, "uid": f"uid-{name}"} for name in active]
        status: dict[str, Any] = {"active": entries}
        if last is not None:
            status["lastScheduleTime"] = last
        deleting = {"deletionTimestamp": CREATED} if spec.pop("deleting", False) else {}
        template = {
            "metadata": {"labels": {"a": "b"}, "annotations": {"c": "d"}},
            "spec": {"template": {"spec": {"containers": [{"name": "c", "image": "i"}]}}},
        }
        doc = {
            "metadata": {
                "name": "tick",
                "namespace": "ns",
                "uid": "cron-uid",
                "creationTimestamp": CREATED,
                **deleting,
            },
            "spec": {"schedule": schedule, "concurrencyPolicy": "Allow", "jobTemplate": template, **spec},
            "status": status,
        }
        return CRON_JOBS.decode(codec.encode(doc))

    return make


@pytest.fixture
def make_job() -> Callable[..., Job]:
    """A Job of that CronJob. ``end``: Complete or Failed."""

    def make(name: str, end: str = "", *, started: str | None = CREATED, ended: str | None = None, **meta: Any) -> Job:
        conditions = [{"type": end, "status": "True"}] if end else []
        status = {"startTime": started, "completionTime": ended, "conditions": conditions}
        metadata = {
            "name": name,
            "namespace": "ns",
            "uid": f"uid-{name}",
            "resourceVersion": "7",
            "ownerReferences": [{"kind": "CronJob", "name": "tick", "uid": "cron-uid", "controller": True}],
            **meta,
        }
        return JOBS.decode(codec.encode({"metadata": metadata, "status": {k: v for k, v in status.items() if v}}))

    return make
