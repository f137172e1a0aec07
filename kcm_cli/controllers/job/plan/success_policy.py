"""Whether the indexes that succeeded are enough under spec.successPolicy.

upstream: pkg/controller/job/success_policy.go
"""

from kcm_cli.api.batch import SuccessPolicy, SuccessRule
from kcm_cli.controllers.job.plan.indexes import Indexes, parse


def met(policy: SuccessPolicy | None, completions: int, succeeded: Indexes) -> str | None:
    """Which rule is met, as the condition's message says it; None if none is."""
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
