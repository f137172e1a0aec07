"""Updates of the status of Jobs: it must be consistent, and finished Jobs remain so.

Most rules apply only to changes, so that an invalid old object can be updated.

upstream: pkg/apis/batch/validation/validation.go#ValidateJobUpdateStatus,
pkg/registry/batch/job/strategy.go#getStatusValidationOptions
"""

from collections.abc import Callable

from kcm_cli.sandbox.apiserver.kinds.batch import common
from kcm_cli.sandbox.apiserver.kinds.batch.job_policies import IndexesError, count_indexes, index_interval
from kcm_cli.sandbox.apiserver.types import Errors, Tree
from kcm_cli.sandbox.apiserver.validation import errors, go_print, metadata, rules

_COUNTERS = rules.fields(*rules.counters("active", "succeeded", "failed", "ready", "terminating"))

_FINAL = ("Failed", "Complete", "FailureTarget")
_FINISHED = "Finished"


def validate_job_status(new: Tree, old: Tree) -> Errors:
    """Check an update of the status of a Job."""
    spec, status, known = new["spec"], new.get("status") or {}, old.get("status") or {}
    found = [*metadata.validate_meta_update(new["metadata"], old["metadata"])]
    found += _COUNTERS(status, "status")
    found += _uncounted(status.get("uncountedTerminatedPods") or {})
    states, before = _states(status), _states(known)

    def changed(*names: str) -> bool:
        """Whether one of these conditions or fields changes."""
        return any(
            (name in states) != (name in before) if name[0].isupper() else status.get(name) != known.get(name)
            for name in names
        )

    found += _completion(status, states, changed)
    found += _finished(spec, status, states, changed)
    found += _indexes(spec, status, changed)
    if changed("Finished", "terminating") and _FINISHED in states and status.get("terminating", 0) > 0:
        detail = "terminating>0 is invalid for finished job"
        found.append(errors.invalid("status.terminating", status["terminating"], detail))
    ready = status.get("ready")
    if changed("ready", "active") and ready is not None and ready > status.get("active", 0):
        found.append(errors.invalid("status.ready", ready, "cannot set more ready pods than active"))
    found += _success(spec, states)
    return [*found, *_transition(spec, status, known, states, before)]


def _states(status: Tree) -> frozenset[str]:
    """The types of conditions that are true, and ``Finished`` for Complete or Failed."""
    conditions = status.get("conditions") or ()
    states = {item.get("type", "") for item in conditions if item.get("status") == "True"}
    if states & {"Complete", "Failed"}:
        states.add(_FINISHED)
    return frozenset(states)


def _uncounted(pods: Tree) -> Errors:
    seen: set[str] = set()
    for field in ("succeeded", "failed"):
        for index, uid in enumerate(pods.get(field) or ()):
            path = f"status.uncountedTerminatedPods.{field}[{index}]"
            if not uid:
                yield errors.invalid(path, uid, "must not be empty")
            elif uid in seen:
                yield errors.duplicate(path, uid)
            seen.add(uid)


def _both(states: frozenset[str], first: str, second: str) -> Errors:
    if not {first, second} <= states:
        return []
    return [common.unshown("status.conditions", f"cannot set {first}=True and {second}=true conditions")]


def _needs(states: frozenset[str], one: str, other: str) -> Errors:
    if one not in states or other in states:
        return []
    return [common.unshown("status.conditions", f"cannot set {one}=True condition without the {other}=true condition")]


Changed = Callable[..., bool]


def _completion(status: Tree, states: frozenset[str], changed: Changed) -> Errors:
    time, start, path = status.get("completionTime"), status.get("startTime"), "status.completionTime"
    complete = "Complete" in states
    if changed("Complete", "Failed"):
        yield from _both(states, "Complete", "Failed")
    if changed("Complete", "FailureTarget"):
        yield from _both(states, "Complete", "FailureTarget")
    if changed("Complete", "completionTime"):
        if time is not None and not complete:
            yield errors.invalid(path, time, "cannot set completionTime when there is no Complete=True condition")
        if time is None and complete:
            yield errors.required(path, "completionTime is required for Complete jobs")
    if changed("startTime", "completionTime") and start and time and time < start:
        yield errors.invalid(path, time, "must be equal to or after `startTime`")


def _finished(spec: Tree, status: Tree, states: frozenset[str], changed: Changed) -> Errors:
    if changed("Failed", "failedIndexes"):
        yield from _needs(states, "Failed", "FailureTarget")
    if changed("Complete", "SuccessCriteriaMet"):
        yield from _needs(states, "Complete", "SuccessCriteriaMet")
    if _FINISHED not in states:
        return
    if changed(_FINISHED, "active") and status.get("active", 0) > 0:
        yield errors.invalid("status.active", status["active"], "active>0 is invalid for finished job")
    nothing_to_do = spec.get("suspend") is True and spec.get("completions") == 0
    if changed(_FINISHED, "startTime") and not nothing_to_do and status.get("startTime") is None:
        yield errors.required("status.startTime", "startTime is required for finished job")
    uncounted = status.get("uncountedTerminatedPods") or {}
    if changed(_FINISHED, "uncountedTerminatedPods") and any(uncounted.values()):
        shown = go_print.internal("batch.UncountedTerminatedPods", uncounted)
        yield errors.invalid("status.uncountedTerminatedPods", shown, "must be empty for finished job")


def _indexes(spec: Tree, status: Tree, changed: Changed) -> Errors:
    completions, per_index = spec.get("completions"), spec.get("backoffLimitPerIndex") is not None
    completed, failed = status.get("completedIndexes", ""), status.get("failedIndexes")
    if changed("completedIndexes") and completions is not None:
        yield from _format(completed, completions, "completedIndexes")
    if changed("failedIndexes") and completions is not None and per_index and failed is not None:
        yield from _format(failed, completions, "failedIndexes")
    if changed("completedIndexes") and completed and spec.get("completionMode") != "Indexed":
        detail = "cannot set non-empty completedIndexes when non-indexed completion mode"
        yield errors.invalid("status.completedIndexes", completed, detail)
    if changed("failedIndexes") and failed is not None and not per_index:
        detail = "cannot set non-null failedIndexes when backoffLimitPerIndex is null"
        yield errors.invalid("status.failedIndexes", failed, detail)
    if changed("failedIndexes", "completedIndexes") and completions is not None and failed:
        common = _overlap(completed, failed, completions)
        if common is not None:
            detail = f"failedIndexes and completedIndexes overlap at index: {common}"
            yield errors.invalid("status.failedIndexes", failed, detail)


def _format(text: str, completions: int, field: str) -> Errors:
    try:
        count_indexes(text, completions)
    except IndexesError as error:
        return [errors.invalid(f"status.{field}", text, f"error parsing {field}: {error}")]
    return []


def _intervals(text: str, completions: int) -> list[tuple[int, int]]:
    found: list[tuple[int, int]] = []
    for part in text.split(",") if text else ():
        try:
            found.append(index_interval(part, completions))
        except IndexesError:
            continue
    return found


def _overlap(completed: str, failed: str, completions: int) -> int | None:
    """The first index that is in both lists, or None."""
    ours, theirs = _intervals(completed, completions), _intervals(failed, completions)
    i = j = 0
    while i < len(ours) and j < len(theirs):
        (low, high), (other_low, other_high) = ours[i], theirs[j]
        if low <= other_high and other_low <= high:
            return max(low, other_low)
        if low <= other_low:
            i += 1
        else:
            j += 1
    return None


def _success(spec: Tree, states: frozenset[str]) -> Errors:
    yield from _both(states, "SuccessCriteriaMet", "Failed")
    yield from _both(states, "SuccessCriteriaMet", "FailureTarget")
    if spec.get("successPolicy") is not None and "Complete" in states and "SuccessCriteriaMet" not in states:
        detail = "cannot set Complete=True for Job with SuccessPolicy unless SuccessCriteriaMet=True"
        yield common.unshown("status.conditions", detail)


def _transition(spec: Tree, status: Tree, known: Tree, states: frozenset[str], before: frozenset[str]) -> Errors:
    for name in _FINAL:
        if name in before and name not in states:
            yield common.unshown("status.conditions", f"cannot disable the terminal {name}=True condition")
    elastic = spec.get("completionMode") == "Indexed" and spec.get("completions") == spec.get("parallelism")
    for name in ("failed",) if elastic else ("failed", "succeeded"):
        if status.get(name, 0) < known.get(name, 0):
            yield errors.invalid(f"status.{name}", status.get(name, 0), f"cannot decrease the {name} counter")
    time, start = status.get("completionTime"), status.get("startTime")
    if time is not None and known.get("completionTime") not in (None, time):
        yield errors.invalid("status.completionTime", time, errors.IMMUTABLE)
    if known.get("startTime") not in (None, start) and not spec.get("suspend") and not _resumes(status, before):
        yield errors.invalid("status.startTime", start, "field is immutable for unsuspended job once set")
    if "SuccessCriteriaMet" in before and "SuccessCriteriaMet" not in states:
        yield common.unshown("status.conditions", "cannot disable the SuccessCriteriaMet=True condition")
    if "Complete" in before and "SuccessCriteriaMet" in states - before:
        detail = "cannot set SuccessCriteriaMet=True for Job already has Complete=true conditions"
        yield common.unshown("status.conditions", detail)


def _resumes(status: Tree, before: frozenset[str]) -> bool:
    conditions = status.get("conditions") or ()
    ended = any(item.get("type") == "Suspended" and item.get("status") == "False" for item in conditions)
    return ended and "Suspended" in before
