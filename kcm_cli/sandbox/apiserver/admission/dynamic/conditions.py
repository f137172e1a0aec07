"""``matchConditions``: expressions that all have to be true for a policy or webhook to match.

upstream: staging/src/k8s.io/apiserver/pkg/admission/plugin/webhook/matchconditions
"""

from collections.abc import Mapping, Sequence

from kcm_cli.machinery import cel
from kcm_cli.machinery.errors import aggregated
from kcm_cli.sandbox.apiserver.admission.dynamic.scope import Condition
from kcm_cli.sandbox.apiserver.types import Tree


class ConditionError(Exception):
    """A condition failed to run, and none was false."""


class MatchConditions:
    """The compiled conditions of a policy or webhook."""

    def __init__(self, docs: Sequence[Tree], *, ignore_failures: bool) -> None:
        self._conditions = [Condition(doc.get("expression", "")) for doc in docs]
        self._ignore_failures = ignore_failures

    def __bool__(self) -> bool:
        return bool(self._conditions)

    def hold(self, scope: Mapping[str, cel.Value]) -> bool:
        """Whether all are true. Raises ConditionError."""
        failures: list[str] = []
        for condition in self._conditions:
            try:
                if condition.evaluate(scope) is False:
                    return False
            except cel.CelError as error:
                failures.append(str(error))
        if failures and not self._ignore_failures:
            raise ConditionError(aggregated(failures))
        return not failures
