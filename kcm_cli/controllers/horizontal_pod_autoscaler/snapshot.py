"""What the horizontal-pod-autoscaler-controller reads for one autoscaler, and what it remembers of it."""

from collections.abc import Mapping
from datetime import datetime, timedelta

import msgspec

from kcm_cli.api.autoscaling import HorizontalPodAutoscaler, Scale
from kcm_cli.api.core import Pod
from kcm_cli.controllers.horizontal_pod_autoscaler.config import HorizontalPodAutoscalerConfig


class Features(msgspec.Struct, frozen=True):
    """The gates that the controller reads."""

    tolerance: bool
    to_zero: bool
    pod_level: bool


class Mark(msgspec.Struct, frozen=True):
    """A number (a recommendation, or the size of a change) and when it was made."""

    number: int
    at: datetime


class History(msgspec.Struct, frozen=True):
    """What was recommended and done for one autoscaler."""

    recommendations: tuple[Mark, ...] = ()
    ups: tuple[Mark, ...] = ()
    downs: tuple[Mark, ...] = ()


class Sample(msgspec.Struct, frozen=True):
    """The value of one pod: measured at ``at`` over the ``window`` before."""

    value: int
    at: datetime | None = None
    window: timedelta = timedelta(0)


Samples = Mapping[str, Sample]


class Uncomputable(Exception):
    """There is no number of replicas to be had; the text goes into events and conditions."""


class Reading(msgspec.Struct, frozen=True):
    """What a metrics API returned for one metric: samples by pod name, one value or several; ``failure`` says why it
    returned none. Nothing is asked for a metric that is not valid. ``seconds``: how long it took."""

    value: Samples | int | tuple[int, ...] | None = None
    failure: Uncomputable | None = None
    seconds: float = 0.0


class Selected(msgspec.Struct, frozen=True):
    """The pods that the target's selector chooses, and the names of the autoscalers that have such pods."""

    pods: tuple[Pod, ...] = ()
    autoscalers: tuple[str, ...] = ()


class Snapshot(msgspec.Struct, frozen=True):
    """An autoscaler, the scale of its target, and its metrics in the order of the spec.

    scale: None where it could not be read, for the reason ``unreadable``; ``by_spec``: through the autoscaler's fault.
    ``selected`` and ``readings`` are empty where no metrics are needed, or the selector is not valid.
    """

    hpa: HorizontalPodAutoscaler
    config: HorizontalPodAutoscalerConfig
    features: Features
    history: History | None
    scale: Scale | None
    unreadable: str = ""
    by_spec: bool = False
    selected: Selected = Selected()
    readings: tuple[Reading, ...] = ()
