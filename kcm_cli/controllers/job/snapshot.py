"""What the Job controller reads for one Job."""

from dataclasses import dataclass

from kcm_cli.api.batch import Job
from kcm_cli.api.core import Pod
from kcm_cli.controllers.job.plan.backoff import FRESH, Backoff
from kcm_cli.controllers.job.plan.features import ALL, Features


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """A Job, the pods that it controls, and what the controller remembers of it.

    satisfied: the cache shows all pods that earlier syncs created or deleted. pod_group: what new pods join.
    """

    job: Job
    pods: tuple[Pod, ...] = ()
    satisfied: bool = True
    backoff: Backoff = FRESH
    features: Features = ALL
    pod_group: str | None = None
