"""The policies of a Job. spec.podFailurePolicy: the first rule that matches a failed pod decides. spec.successPolicy:
the Job succeeds once a rule's indexes have succeeded.

upstream: pkg/controller/job/pod_failure_policy.go, success_policy.go
"""

from collections.abc import Iterable

import msgspec

from kcm_cli.api.batch import FailurePolicy, FailureRule, OnExitCodes, SuccessPolicy, SuccessRule
from kcm_cli.api.core import ContainerStatus, Pod
from kcm_cli.controllers.job.plan.indexes import Indexes, parse
from kcm_cli.controllers.job.plan.spec import COUNT, FAIL_INDEX, FAIL_JOB, IGNORE


class Match(msgspec.Struct, frozen=True):
    """The result for a failed pod. ``action`` is None where no rule matched; ``message`` is set where the Job fails."""

    action: str | None = None
    message: str | None = None

    @property
    def counts(self) -> bool:
        """Whether the failure counts towards the backoff limits."""
        return self.action != IGNORE


NO_MATCH = Match()


def match(policy: FailurePolicy | None, pod: Pod) -> Match:
    """Apply the pod failure policy to a failed pod."""
    if policy is None:
        return NO_MATCH
    for number, rule in enumerate(policy.rules):
        found = _apply(rule, number, pod)
        if found is not None:
            return found
    return NO_MATCH


def _apply(rule: FailureRule, number: int, pod: Pod) -> Match | None:
    """Apply one rule; None if it does not match or its action is unknown."""
    if rule.on_exit_codes is not None:
        what = _exit_code(rule.on_exit_codes, pod)
    elif rule.on_pod_conditions:
        what = _condition(rule, pod)
    else:
        return None
    if what is None:
        return None
    if rule.action == FAIL_JOB:
        return Match(FAIL_JOB, f"{what} matching {rule.action} rule at index {number}")
    return Match(rule.action) if rule.action in (IGNORE, COUNT, FAIL_INDEX) else None


def _exit_code(wanted: OnExitCodes, pod: Pod) -> str | None:
    status = pod.status
    for container in (*status.container_statuses, *status.init_container_statuses):
        code = _failed_with(container)
        if code and wanted.container_name in (None, container.name) and _listed(wanted, code):
            return f"Container {container.name} for pod {pod.key} failed with exit code {code}"
    return None


def _failed_with(container: ContainerStatus) -> int:
    ended = container.state.terminated if container.state is not None else None
    return 0 if ended is None else ended.exit_code


def _listed(wanted: OnExitCodes, code: int) -> bool:
    if wanted.operator == "In":
        return code in wanted.values
    return wanted.operator == "NotIn" and code not in wanted.values


def _condition(rule: FailureRule, pod: Pod) -> str | None:
    patterns = {(pattern.type, pattern.status) for pattern in rule.on_pod_conditions or ()}
    for condition in pod.status.conditions:
        if (condition.type, condition.status) in patterns:
            return f"Pod {pod.key} has condition {condition.type}"
    return None


def failing_message(policy: FailurePolicy | None, failed: Iterable[Pod]) -> str | None:
    """The message of the FailJob rule that a failed pod matches; None if there is none."""
    if policy is None:
        return None
    for pod in failed:
        message = match(policy, pod).message
        if message is not None:
            return message
    return None


def met(policy: SuccessPolicy | None, completions: int, succeeded: Indexes) -> str | None:
    """The message of the success policy rule that is met; None if there is none."""
    if policy is None or not succeeded:
        return None
    for number, rule in enumerate(policy.rules):
        if _holds(rule, completions, succeeded):
            return f"Matched rules at index {number}"
    return None


def _holds(rule: SuccessRule, completions: int, succeeded: Indexes) -> bool:
    count = rule.succeeded_count
    if rule.succeeded_indexes is None:
        return count is not None and succeeded.total >= count
    required = parse(rule.succeeded_indexes, completions)
    if not required:
        return False
    done = required.overlap(succeeded)
    return done == required.total or (count is not None and done >= count)
