"""Options of the job-controller."""

from dataclasses import dataclass
from typing import ClassVar

from kcm_cli.component.kinds import INT32
from kcm_cli.component.options import option


@dataclass(frozen=True, slots=True)
class JobConfig:
    """Options of the job controller."""

    SECTION: ClassVar[str] = "Job-controller"
    KEY: ClassVar[str] = "JobController"

    concurrent_syncs: int = option(
        INT32,
        5,
        flag="concurrent-job-syncs",
        key="ConcurrentJobSyncs",
        minimum=1,
        help=(
            "How many Jobs are worked on at the same time. More makes the controller quicker to respond and "
            "uses more CPU and network."
        ),
    )
