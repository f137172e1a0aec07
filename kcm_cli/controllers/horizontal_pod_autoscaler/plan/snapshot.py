"""The snapshot of one autoscaler, and its history."""

from collections.abc import Mapping
from datetime import datetime, timedelta

import msgspec

from kcm_cli.api.autoscaling import HorizontalPodAutoscaler, Scale
from kcm_cli.api.core import Pod
from kcm_cli.controllers.horizontal_pod_autoscaler.config import HorizontalPodAutoscalerConfig


class Features(msgspec.Struct, frozen=True):
    """The feature gates that the controller reads."""

    tolerance: bool
    to_zero: bool
    pod_level: bool


class Mark(msgspec.Struct, frozen=True):
    """A recommendation or a change of size. ``at``: monotonic seconds, so that setting the clock moves no window."""

    number: int
    at: float


class History(msgspec.Struct, frozen=True):
    """The recommendations and the changes of size of one autoscaler."""

    recommendations: tuple[Mark, ...] = ()
    ups: tuple[Mark, ...] = ()
    downs: tuple[Mark, ...] = ()


class Sample(msgspec.Struct, frozen=True):
    """The value of one pod, measured at ``at`` over the preceding ``window``."""

    value: int
    at: datetime | None = None
    window: timedelta = timedelta(0)


Samples = Mapping[str, Sample]


class Uncomputable(Exception):
    """The number of replicas cannot be computed. The text goes into Events and conditions."""


class Reading(msgspec.Struct, frozen=True):
    """The result of reading one metric: samples by pod name, one value, or several. ``failure``: why there is none.
    ``seconds``: the duration of the request. An invalid metric is not read."""

    value: Samples | int | tuple[int, ...] | None = None
    failure: Uncomputable | None = None
    seconds: float = 0.0


class Snapshot(msgspec.Struct, frozen=True):
    """An autoscaler, the scale of its target, and its metrics in the order of the spec.

    scale: None if it could not be read. unreadable: the reason for that. by_spec: the reason lies in the autoscaler's
    spec. autoscalers: the names of those whose selectors match some of the target's pods. readings: one for each
    metric. pods: those of the target as of the last reading. All three are empty if no metrics are needed or the
    selector is invalid.
    """

    hpa: HorizontalPodAutoscaler
    config: HorizontalPodAutoscalerConfig
    features: Features
    history: History | None
    scale: Scale | None
    unreadable: str = ""
    by_spec: bool = False
    autoscalers: tuple[str, ...] = ()
    readings: tuple[Reading, ...] = ()
    pods: tuple[Pod, ...] = ()
