"""horizontal-pod-autoscaler-controller: as many replicas as the metrics of the pods ask for.

Every autoscaler is looked at once per sync period; changes of it in between wait for that.

upstream: pkg/controller/podautoscaler
"""

import asyncio
import logging
from collections.abc import Mapping, Sequence

from kcm_cli.api.autoscaling import HORIZONTAL_POD_AUTOSCALERS, HorizontalPodAutoscaler, Scale
from kcm_cli.api.core import PODS, Pod
from kcm_cli.controllers.horizontal_pod_autoscaler import snapshot
from kcm_cli.controllers.horizontal_pod_autoscaler.config import HorizontalPodAutoscalerConfig
from kcm_cli.controllers.horizontal_pod_autoscaler.draft import Draft
from kcm_cli.controllers.horizontal_pod_autoscaler.metrics import INTERNAL, NONE, SPEC, AutoscalerMetrics, action
from kcm_cli.controllers.horizontal_pod_autoscaler.metrics_apis import MetricsApis
from kcm_cli.controllers.horizontal_pod_autoscaler.plan import behavior
from kcm_cli.controllers.horizontal_pod_autoscaler.plan.behavior import Bounds, History
from kcm_cli.controllers.horizontal_pod_autoscaler.plan.calculator import Scope, Timing
from kcm_cli.controllers.horizontal_pod_autoscaler.plan.conditions import ABLE, ACTIVE, SCALED_TO_ZERO
from kcm_cli.controllers.horizontal_pod_autoscaler.proposals import MetricFailed, Proposal, Target, propose
from kcm_cli.controllers.horizontal_pod_autoscaler.snapshot import Features
from kcm_cli.controllers.horizontal_pod_autoscaler.targets import Held, ScaleFailed, Targets
from kcm_cli.engine import writes
from kcm_cli.engine.context import ControllerContext
from kcm_cli.engine.controller import Controller, Keys, Queue, Watch
from kcm_cli.machinery.errors import FormatError
from kcm_cli.machinery.labels import NOTHING, Selector, parse
from kcm_cli.machinery.meta import split_key
from kcm_cli.machinery.times import format_time
from kcm_cli.planning.actions import Update
from kcm_cli.planning.status import status_changes
from kcm_cli.rest.transport import RequestError
from kcm_cli.runtime.workqueue import RetryLimiter

log = logging.getLogger(__name__)

AT_ONCE = 5000
"""So many labels of pods are compared before others may run."""

_BELOW_MINIMUM = "Current number of replicas below Spec.MinReplicas"


class SyncFailed(Exception):
    """An autoscaler could not be followed, wholly or in part; it is tried again after the sync period."""

    reason = "SyncFailed"

    def __init__(self, text: str, *, by_spec: bool = False) -> None:
        super().__init__(text)
        self.by_spec = by_spec


class Interval(RetryLimiter):
    """Every key comes back after the same time."""

    def __init__(self, interval_s: float) -> None:
        super().__init__()
        self._interval_s = interval_s

    def when(self, key: str, now: float) -> float:
        return self._interval_s


class AutoscalerController:
    """Keys are autoscalers. Keeps of each (by uid), in memory only, what it recommended and did lately."""

    def __init__(self, context: ControllerContext) -> None:
        self._client, self._clock, self._recorder = context.client, context.clock, context.recorder
        self._config = context.config(HorizontalPodAutoscalerConfig)
        enabled = context.gates.enabled
        self._features = Features(
            enabled("HPAConfigurableTolerance"), enabled("HPAScaleToZero"), enabled("PodLevelResources")
        )
        self._metrics = AutoscalerMetrics(context.metrics)
        self._targets = Targets(context.client, context.clock)
        self._apis = MetricsApis(context.client, context.clock)
        self._histories: dict[str, History] = {}
        self._selectors: dict[str, dict[str, Selector]] = {}
        (self._queue,) = context.queues
        self._hpas = context.cache(HORIZONTAL_POD_AUTOSCALERS)
        self._pods = context.cache(PODS)

    async def sync(self, key: str) -> float | None:
        hpa = self._hpas.store.get(key)
        if hpa is None:
            self._metrics.forget(*split_key(key))
            return None
        started, error = self._clock.monotonic(), NONE
        draft = Draft(hpa, self._recorder, format_time(self._clock.now()))
        try:
            await self._reconcile(draft)
        except SyncFailed as failure:
            error = SPEC if failure.by_spec else INTERNAL
            raise
        finally:
            self._metrics.reconciled(draft.done, error, self._clock.monotonic() - started)
        return self._config.sync_period_s

    # -- the steps of one look

    async def _reconcile(self, draft: Draft) -> None:
        """Raises SyncFailed."""
        held = await self._scale(draft)
        scale, hpa = held.scale, draft.hpa
        current, least = scale.spec.replicas, snapshot.minimum(hpa.spec)
        self._remember(draft, behavior.first_seen(self._histories.get(hpa.uid), current, self._clock.now()))
        desired, why, failure = current, "", None
        if current == 0 and not self._may_wake(hpa, least):
            text = "scaling is disabled since the replica count of the target is zero"
            draft.set(ACTIVE, "False", "ScalingDisabled", text)
            if not self._features.to_zero:
                draft.drop(SCALED_TO_ZERO)
        elif current > hpa.spec.max_replicas:
            desired, why = hpa.spec.max_replicas, "Current number of replicas above Spec.MaxReplicas"
        elif 0 < current < least:
            desired, why = least, _BELOW_MINIMUM
        else:
            best, failure = await self._computed(draft, scale)
            desired, why = self._normalized(draft, Bounds(current, best.replicas, least, hpa.spec.max_replicas))
            why = f"{best.metric} above target" if why == "above" else why
        if desired != current:
            await self._rescale(draft, held, desired, why)
        draft.sizes(current, desired, rescaled=desired != current)
        self._metrics.desired(hpa.namespace, hpa.name, desired)
        await self._write(draft)
        if failure is not None:
            raise SyncFailed(failure)

    async def _scale(self, draft: Draft) -> Held:
        ref = draft.hpa.spec.scale_target_ref
        try:
            held = await self._targets.read(draft.hpa.namespace, ref)
        except ScaleFailed as error:
            draft.warn("FailedGetScale", str(error))
            text = f"the HPA controller was unable to get the target's current scale: {error}"
            draft.set(ABLE, "False", "FailedGetScale", text)
            await self._write(draft)
            told = f"failed to query scale subresource for {_reference(draft.hpa)}: {error}"
            raise SyncFailed(told, by_spec=error.by_spec) from None
        text = "the HPA controller was able to get the target's current scale"
        draft.set(ABLE, "True", "SucceededGetScale", text)
        return held

    def _may_wake(self, hpa: HorizontalPodAutoscaler, least: int) -> bool:
        """Whether a target without replicas is ours to scale up again."""
        ours = snapshot.was_scaled_to_zero(hpa, self._features)
        return ours and (least != 0 or snapshot.has_outside_metric(hpa.spec))

    async def _computed(self, draft: Draft, scale: Scale) -> tuple[Proposal, str | None]:
        """The highest proposal, and what went wrong with other metrics. Raises SyncFailed where none may count."""
        try:
            best, failure = await self._proposals(draft, scale)
        except SyncFailed as error:
            draft.warn("FailedComputeMetricsReplicas", str(error))
            draft.sizes(scale.spec.replicas, draft.status.desired_replicas)
            await self._write(draft)
            prefix = "failed to compute desired number of replicas based on listed metrics for"
            raise SyncFailed(f"{prefix} {_reference(draft.hpa)}: {error}") from None
        text = f"the HPA was able to successfully calculate a replica count from {best.metric}"
        draft.set(ACTIVE, "True", "ValidMetricFound", text)
        return best, failure

    async def _proposals(self, draft: Draft, scale: Scale) -> tuple[Proposal, str | None]:
        selector, pods = await self._selected(draft, scale.status.selector)
        hpa, config = draft.hpa, self._config
        timing = Timing(self._clock.now(), config.cpu_initialization_period_s, config.initial_readiness_delay_s)
        tolerances = snapshot.tolerances(hpa.spec, config, self._features)
        scope = Scope(scale.spec.replicas, pods, tolerances, timing)
        target = Target(hpa.namespace, selector, scope, scale.status.replicas, self._features.pod_level)
        best: Proposal | None = None
        failures: list[MetricFailed] = []
        draft.metrics = []
        for spec in hpa.spec.metrics:
            started, after, error = self._clock.monotonic(), hpa.status.current_replicas, NONE
            try:
                found = await propose(self._apis, spec, target)
            except MetricFailed as failed:
                draft.warn(failed.reason, failed.told)
                failures.append(failed)
                draft.metrics.append({"type": ""})
                error = SPEC if failed.by_spec else INTERNAL
            else:
                draft.metrics.append(found.status)
                best = found if best is None or best.replicas == 0 or found.replicas > best.replicas else best
                after = found.replicas
            seconds = self._clock.monotonic() - started
            self._metrics.computed(action(hpa.status.current_replicas, after), error, spec.type, seconds)
        failure = None
        if failures:
            counts = f"{len(failures)} invalid out of {len(hpa.spec.metrics)}"
            failure = f"invalid metrics ({counts}), first error is: {failures[0]}"
        if best is None or (failures and best.replicas < scale.spec.replicas):
            if failures:
                text = f"the HPA was unable to compute the replica count: {failures[0].told}"
                draft.set(ACTIVE, "False", failures[0].reason, text)
            raise SyncFailed(failure or "invalid metrics (0 invalid out of 0)")
        return best, failure

    async def _selected(self, draft: Draft, text: str) -> tuple[Selector, tuple[Pod, ...]]:
        """The target's selector and pods. Raises SyncFailed where it is bad, or others scale these pods too."""
        if not text:
            draft.warn("SelectorRequired", "selector is required")
            draft.set(ACTIVE, "False", "InvalidSelector", "the HPA target's scale is missing a selector")
            raise SyncFailed("selector is required")
        try:
            selector = parse(text)
        except FormatError as error:
            told = f"couldn't convert selector into a corresponding internal selector object: {error}"
            raise self._refused(draft, "InvalidSelector", told) from None
        hpa = draft.hpa
        others = self._selectors.get(hpa.namespace, {})
        if hpa.name in others:  # it may have been deleted while its target was asked for
            others[hpa.name] = selector
        pods = tuple(pod for pod in self._pods.store.list(hpa.namespace) if selector.matches(pod.labels))
        names = await _choosing(others, pods)
        if len(names) > 1:
            listed = " ".join(f"{hpa.namespace}/{name}" for name in sorted(names))
            told = f"pods by selector {text} are controlled by multiple HPAs: [{listed}]"
            raise self._refused(draft, "AmbiguousSelector", told)
        return selector, pods

    @staticmethod
    def _refused(draft: Draft, reason: str, told: str) -> SyncFailed:
        draft.warn(reason, told)
        draft.set(ACTIVE, "False", reason, told)
        return SyncFailed(told)

    def _normalized(self, draft: Draft, bounds: Bounds) -> tuple[int, str]:
        """The size to go to, and why: "above" for the best metric being above its target."""
        desired = max(bounds.desired, 0)
        why = "above" if desired > bounds.current else "All metrics below target" if desired < bounds.current else ""
        bounds = Bounds(bounds.current, desired, bounds.minimum, bounds.maximum)
        result = behavior.normalized(
            draft.hpa.spec.behavior,
            bounds,
            draft.history,
            self._clock.now(),
            self._config.downscale_stabilization_s,
        )
        self._remember(draft, result.history)
        draft.normalized(result)
        size = result.limited.replicas
        if bounds.current == 0 and size < bounds.minimum:
            return bounds.minimum, why or _BELOW_MINIMUM
        return size, why

    async def _rescale(self, draft: Draft, held: Held, desired: int, why: str) -> None:
        current, hpa = held.scale.spec.replicas, draft.hpa
        try:
            await self._targets.write(held, desired)
        except ScaleFailed as error:
            draft.warn("FailedRescale", f"New size: {desired}; reason: {why}; error: {error}")
            text = f"the HPA controller was unable to update the target scale: {error}"
            draft.set(ABLE, "False", "FailedUpdateScale", text)
            draft.sizes(current, draft.status.desired_replicas)
            await self._write(draft)
            raise SyncFailed(f"failed to rescale {_reference(hpa)}: {error}") from None
        text = f"the HPA controller was able to update the target scale to {desired}"
        draft.set(ABLE, "True", "SucceededRescale", text)
        draft.emit("Normal", "SuccessfulRescale", f"New size: {desired}; reason: {why}")
        now = self._clock.now()
        self._remember(draft, behavior.scaled(draft.history, hpa.spec.behavior, current, desired, now))
        self._mark_zero(draft, desired)
        draft.done = action(current, desired)
        fields = {"HPA": hpa.key, "currentReplicas": current, "desiredReplicas": desired, "reason": why}
        log.info("Successfully rescaled", extra={"fields": fields})

    def _remember(self, draft: Draft, history: History) -> None:
        """Keep what is known of an autoscaler, unless it has gone in the meantime."""
        draft.history = history
        there = self._hpas.store.get(draft.hpa.key)
        if there is not None and there.uid == draft.hpa.uid:
            self._histories[draft.hpa.uid] = history

    def _mark_zero(self, draft: Draft, desired: int) -> None:
        """Say whether it was we who took away the last pod."""
        if not self._features.to_zero:
            draft.drop(SCALED_TO_ZERO)
        elif desired == 0 and snapshot.minimum(draft.hpa.spec) == 0 and snapshot.has_outside_metric(draft.hpa.spec):
            draft.set(SCALED_TO_ZERO, "True", "ScaledToZero", "the HPA controller scaled the workload to zero")
        else:
            text = "the HPA controller did not scale the workload to zero"
            draft.set(SCALED_TO_ZERO, "False", "NotScaledToZero", text)

    async def _write(self, draft: Draft) -> None:
        """One write of the status, if it differs. Raises SyncFailed."""
        if draft.status == draft.hpa.status:
            return
        changes = status_changes(draft.status, always=("desiredReplicas",))
        try:
            await writes.update(self._client, Update(HORIZONTAL_POD_AUTOSCALERS, draft.hpa, changes, "status"))
        except RequestError as error:
            draft.warn("FailedUpdateStatus", str(error))
            raise SyncFailed(f"failed to update status for {draft.hpa.name}: {error}") from None

    # -- events

    def changed(self, hpa: HorizontalPodAutoscaler) -> Keys:
        """No key at once: it is queued as after a failure, for its next period."""
        self._queue.add_rate_limited(hpa.key)
        known = self._selectors.setdefault(hpa.namespace, {})
        if hpa.name not in known:
            known[hpa.name] = NOTHING
            self._metrics.count.inc()
        return ()

    def deleted(self, hpa: HorizontalPodAutoscaler) -> Keys:
        """The autoscaler, so that its metrics go, too."""
        self._histories.pop(hpa.uid, None)
        known = self._selectors.get(hpa.namespace, {})
        if known.pop(hpa.name, None) is not None:
            self._metrics.count.dec()
        if not known:
            self._selectors.pop(hpa.namespace, None)
        return (hpa.key,)


async def _choosing(selectors: Mapping[str, Selector], pods: Sequence[Pod]) -> list[str]:
    """The names of the selectors that choose some of the pods. Yields to the loop after each AT_ONCE looks."""
    found, looks = [], 0
    for name, selector in list(selectors.items()):
        if any(selector.matches(pod.labels) for pod in pods):
            found.append(name)
        looks += len(pods)
        if looks >= AT_ONCE:
            looks = 0
            await asyncio.sleep(0)
    return found


def _reference(hpa: HorizontalPodAutoscaler) -> str:
    ref = hpa.spec.scale_target_ref
    return f"{ref.kind}/{hpa.namespace}/{ref.name}"


CONTROLLER = Controller(
    AutoscalerController,
    Queue(
        "horizontalpodautoscaler",
        Watch(HORIZONTAL_POD_AUTOSCALERS, changed=AutoscalerController.changed, deleted=AutoscalerController.deleted),
        sync=AutoscalerController.sync,
        workers=lambda context: context.config(HorizontalPodAutoscalerConfig).concurrent_syncs,
        limiter=lambda context: Interval(context.config(HorizontalPodAutoscalerConfig).sync_period_s),
        writes=(HORIZONTAL_POD_AUTOSCALERS,),
    ),
    reads=(PODS,),
)
