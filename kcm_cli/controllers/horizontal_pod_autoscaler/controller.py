"""horizontal-pod-autoscaler-controller: scales workloads by the metrics of their pods.

Every autoscaler is synced once per sync period; changes in between wait for the next one.

upstream: pkg/controller/podautoscaler
"""

import asyncio
import logging
from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from kcm_cli.api.autoscaling import HORIZONTAL_POD_AUTOSCALERS, HorizontalPodAutoscaler, Scale
from kcm_cli.api.core import PODS, Pod
from kcm_cli.component.logs import V2
from kcm_cli.controllers.horizontal_pod_autoscaler.config import HorizontalPodAutoscalerConfig
from kcm_cli.controllers.horizontal_pod_autoscaler.metrics import INTERNAL, NONE, SPEC, AutoscalerMetrics, action
from kcm_cli.controllers.horizontal_pod_autoscaler.metrics_apis import MetricsApis
from kcm_cli.controllers.horizontal_pod_autoscaler.plan import Rescale, SyncFailed, needs_metrics, plan, status
from kcm_cli.controllers.horizontal_pod_autoscaler.plan.proposals import MetricFailed
from kcm_cli.controllers.horizontal_pod_autoscaler.plan.snapshot import Features, History, Snapshot
from kcm_cli.controllers.horizontal_pod_autoscaler.targets import ScaleFailed, Targets, TargetScale
from kcm_cli.engine import writes
from kcm_cli.engine.context import ControllerContext
from kcm_cli.engine.controller import Controller, Keys, Queue, Watch, starting
from kcm_cli.engine.definitions import mapper
from kcm_cli.engine.worker import unhandled
from kcm_cli.machinery.errors import FormatError
from kcm_cli.machinery.kref import kobj, kref
from kcm_cli.machinery.labels import NOTHING, Selector, parse
from kcm_cli.machinery.meta import split_key
from kcm_cli.planning.actions import Notice, Update, ref_to
from kcm_cli.planning.status import status_changes
from kcm_cli.rest.transport import RequestError
from kcm_cli.runtime.label_indexes import LabelIndex
from kcm_cli.runtime.workqueue import RetryLimiter

log = logging.getLogger(__name__)

AT_ONCE = 5000
"""Comparisons of labels before other tasks run."""


class Interval(RetryLimiter):
    """A rate limiter that requeues every key after the same time."""

    def __init__(self, interval_s: float) -> None:
        super().__init__()
        self._interval_s = interval_s

    def when(self, key: str, now: float) -> float:
        return self._interval_s


class AutoscalerController:
    """Keys are autoscalers. Recommendations and changes of size are kept in memory, for one autoscaler and one target:
    those of a former target say nothing about the size of another one."""

    def __init__(self, context: ControllerContext) -> None:
        self._client, self._clock, self._recorder = context.client, context.clock, context.recorder
        self._config = context.config(HorizontalPodAutoscalerConfig)
        enabled = context.gates.enabled
        self._features = Features(
            enabled("HPAConfigurableTolerance"), enabled("HPAScaleToZero"), enabled("PodLevelResources")
        )
        self._metrics = AutoscalerMetrics(context.metrics)
        kinds = mapper(context)
        self._targets = Targets(context.client, context.clock, kinds)
        self._apis = MetricsApis(context.client, context.clock, kinds)
        self._histories: dict[str, tuple[str, History]] = {}
        """By uid of the autoscaler, with the uid of its target."""
        self._selectors: dict[str, dict[str, Selector]] = {}
        (self._queue,) = context.queues
        self._hpas = context.cache(HORIZONTAL_POD_AUTOSCALERS)
        self._pods = context.cache(PODS)

    async def sync(self, key: str) -> float | None:
        hpa = self._hpas.store.get(key)
        if hpa is None:
            log.info("Horizontal Pod Autoscaler has been deleted", extra={"fields": {"HPA": kref(key)}})
            self._metrics.forget(*split_key(key))
            return None
        started, done, error = self._clock.monotonic(), NONE, NONE
        try:
            snapshot, target = await self._read(hpa)
            planned = plan(snapshot, self._clock.now(), self._clock.monotonic())
            self._count(planned)
            refusal = await self._scale(planned, target)
            planned = status(planned, refusal, self._clock.now(), self._clock.monotonic())
            self._remember(planned)
            for notice in planned.notices:
                self._recorder.emit(notice)
            if not planned.settled:
                done = action(planned.current, planned.replicas)
                self._metrics.desired(hpa.namespace, hpa.name, planned.replicas)
            await self._write(planned)
            if planned.failure is not None:
                raise planned.failure
        except SyncFailed as failure:
            error = SPEC if failure.by_spec else INTERNAL
            raise
        finally:
            self._metrics.reconciled(done, error, self._clock.monotonic() - started)
        return self._config.sync_period_s

    # -- reading

    async def _read(self, hpa: HorizontalPodAutoscaler) -> tuple[Snapshot, TargetScale | None]:
        """The autoscaler with its target's scale and, if they decide about the size, its metrics."""
        snapshot = Snapshot(hpa, self._config, self._features, None, None)
        try:
            target = await self._targets.read(hpa.namespace, hpa.spec.scale_target_ref)
        except ScaleFailed as error:
            if error.is_gone:
                self._select_nothing(hpa)
            return replace(snapshot, unreadable=str(error), by_spec=error.by_spec), None
        scale = target.scale
        snapshot = replace(snapshot, scale=scale, history=self._history_of(hpa, scale))
        if not scale.status.target_selector or not needs_metrics(hpa, scale, self._features):
            return snapshot, target
        try:
            selector = parse(scale.status.target_selector)
        except FormatError:
            return snapshot, target
        await LabelIndex.of(self._pods.store).prepare(hpa.namespace, selector)
        autoscalers = await self._of_same_pods(hpa, selector)
        if len(autoscalers) > 1:
            return replace(snapshot, autoscalers=autoscalers), target
        readings = [await self._apis.read(hpa.namespace, selector, spec) for spec in hpa.spec.metrics]
        pods = tuple(LabelIndex.of(self._pods.store).selected(hpa.namespace, selector))
        return replace(snapshot, autoscalers=autoscalers, readings=tuple(readings), pods=pods), target

    async def _of_same_pods(self, hpa: HorizontalPodAutoscaler, selector: Selector) -> tuple[str, ...]:
        """The names of the autoscalers whose selectors match some of the pods of a selector."""
        others, now = self._selectors.get(hpa.namespace, {}), self._hpas.store.get(hpa.key)
        if now is not None and now.spec.scale_target_ref == hpa.spec.scale_target_ref:  # it may have changed meanwhile
            others[hpa.name] = selector
        return tuple(await _choosing(others, LabelIndex.of(self._pods.store).selected(hpa.namespace, selector)))

    # -- acting

    async def _scale(self, planned: Rescale, target: TargetScale | None) -> str:
        """Write the target's size. Returns the error as text; empty if it was written."""
        if target is None or planned.settled or planned.replicas == planned.current:
            return ""
        try:
            await self._targets.write(target, planned.replicas, reason=planned.reason)
        except ScaleFailed as error:
            return str(error)
        fields = {
            "HPA": kobj(planned.hpa),
            "currentReplicas": planned.current,
            "desiredReplicas": planned.replicas,
            "reason": planned.reason,
        }
        log.info("Successfully rescaled", extra={"fields": fields})
        return ""

    def _count(self, planned: Rescale) -> None:
        """Count the computed metrics."""
        before = planned.hpa.status.current_replicas
        looked = zip(planned.hpa.spec.metrics, planned.proposals, planned.snapshot.readings, strict=False)
        for spec, found, reading in looked:
            if isinstance(found, MetricFailed):
                label, error = NONE, SPEC if found.by_spec else INTERNAL
            else:
                label, error = action(before, found.replicas), NONE
            self._metrics.computed(label, error, spec.type, reading.seconds)

    def _history_of(self, hpa: HorizontalPodAutoscaler, scale: Scale) -> History | None:
        uid, history = self._histories.get(hpa.uid, ("", None))
        return history if uid == scale.uid else None

    def _remember(self, planned: Rescale) -> None:
        """Keep the history of an autoscaler, unless it was deleted meanwhile."""
        hpa, scale, history = planned.hpa, planned.snapshot.scale, planned.history
        there = self._hpas.store.get(hpa.key)
        if scale is not None and history is not None and there is not None and there.uid == hpa.uid:
            self._histories[hpa.uid] = scale.uid, history

    async def _write(self, planned: Rescale) -> None:
        """Write the status if it differs. Raises SyncFailed."""
        hpa = planned.hpa
        if planned.status == hpa.status:
            return
        changes = status_changes(planned.status, always=("desiredReplicas",))
        try:
            await writes.send(self._client, Update(HORIZONTAL_POD_AUTOSCALERS, hpa, changes, "status"))
            log.log(V2, "Successfully updated status", extra={"fields": {"HPA": kobj(hpa)}})
        except RequestError as error:
            notice = Notice(ref_to(HORIZONTAL_POD_AUTOSCALERS, hpa), "Warning", "FailedUpdateStatus", str(error))
            self._recorder.emit(notice)
            raise SyncFailed(f"failed to update status for {hpa.name}: {error}") from None

    # -- events

    def changed(self, hpa: HorizontalPodAutoscaler) -> Keys:
        """Requeue the key for its next sync period; no key is queued at once."""
        self._queue.add_rate_limited(hpa.key)
        known = self._selectors.setdefault(hpa.namespace, {})
        if hpa.name not in known:
            known[hpa.name] = NOTHING
            self._metrics.count.inc()
        return ()

    def updated(self, old: HorizontalPodAutoscaler, new: HorizontalPodAutoscaler) -> Keys:
        """As ``changed``. With another target it selects no pods until its next sync."""
        if old.spec.scale_target_ref != new.spec.scale_target_ref:
            self._select_nothing(new)
        return self.changed(new)

    def _select_nothing(self, hpa: HorizontalPodAutoscaler) -> None:
        """Of an autoscaler with another target, or whose target is gone.

        Upstream keeps the former selector until it has read another one. While its target does not exist (which is how
        some switch an autoscaler off), or has no replicas, another autoscaler of these pods is ambiguous.
        """
        known = self._selectors.get(hpa.namespace, {})
        if hpa.name in known:
            known[hpa.name] = NOTHING

    def deleted(self, hpa: HorizontalPodAutoscaler) -> Keys:
        """Forget the autoscaler, and queue its key, so that its metrics are removed."""
        self._histories.pop(hpa.uid, None)
        known = self._selectors.get(hpa.namespace, {})
        if known.pop(hpa.name, None) is not None:
            self._metrics.count.dec()
        if not known:
            self._selectors.pop(hpa.namespace, None)
        return (hpa.key,)


async def _choosing(selectors: Mapping[str, Selector], pods: Sequence[Pod]) -> list[str]:
    """The names of the selectors that match some of the pods. Yields to the loop after AT_ONCE comparisons."""
    found, looks = [], 0
    present = {label for pod in pods for label in pod.labels.items()}
    for name, selector in list(selectors.items()):
        if present.issuperset(selector.exact_labels) and any(selector.matches(pod.labels) for pod in pods):
            found.append(name)
        looks += len(pods)
        if looks >= AT_ONCE:
            looks = 0
            await asyncio.sleep(0)
    return found


CONTROLLER = Controller(
    AutoscalerController,
    Queue(
        "horizontalpodautoscaler",
        Watch(
            HORIZONTAL_POD_AUTOSCALERS,
            added=AutoscalerController.changed,
            updated=AutoscalerController.updated,
            deleted=AutoscalerController.deleted,
        ),
        sync=AutoscalerController.sync,
        failures=unhandled(),
        workers=HorizontalPodAutoscalerConfig,
        limiter=lambda context: Interval(context.config(HorizontalPodAutoscalerConfig).sync_period_s),
        writes=(HORIZONTAL_POD_AUTOSCALERS,),
    ),
    reads=(PODS,),
    announces=starting("HPA controller"),
)
