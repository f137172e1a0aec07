from typing import Any

import pytest

from kcm_cli.api.batch import FailurePolicy
from kcm_cli.api.core import PODS, Pod
from kcm_cli.controllers.job.plan.policies import Match, failing_message, match
from kcm_cli.machinery import codec


def policy(*rules: dict[str, Any]) -> FailurePolicy:
    return codec.decode(codec.encode({"rules": list(rules)}), FailurePolicy)


def exit_codes(action: str, *values: int, operator: str = "In", container: str = "") -> dict[str, Any]:
    requirement: dict[str, Any] = {"operator": operator, "values": list(values)}
    if container:
        requirement["containerName"] = container
    return {"action": action, "onExitCodes": requirement}


def conditions(action: str, type_: str, status: str = "True") -> dict[str, Any]:
    return {"action": action, "onPodConditions": [{"type": type_, "status": status}]}


def pod(code: int | None = 1, *, init: int | None = None, disrupted: bool = False) -> Pod:
    def containers(name: str, exit_code: int | None) -> list[dict[str, Any]]:
        state = {"running": {}} if exit_code is None else {"terminated": {"exitCode": exit_code}}
        return [{"name": name, "state": state}]

    status = {
        "phase": "Failed",
        "containerStatuses": containers("main", code),
        "initContainerStatuses": containers("first", init),
        "conditions": [{"type": "DisruptionTarget", "status": "True"}] if disrupted else [],
    }
    return PODS.decode(codec.encode({"metadata": {"name": "p", "namespace": "ns"}, "status": status}))


FAIL_MAIN = "Container main for pod ns/p failed with exit code 42 matching FailJob rule at index 0"


@pytest.mark.parametrize(
    ("rules", "failed", "expected"),
    [
        pytest.param([], pod(), Match(), id="no rule"),
        pytest.param([exit_codes("Ignore", 1)], pod(1), Match("Ignore"), id="in"),
        pytest.param([exit_codes("Ignore", 2)], pod(1), Match(), id="not in the list"),
        pytest.param([exit_codes("Count", 2, operator="NotIn")], pod(1), Match("Count"), id="not in"),
        pytest.param([exit_codes("Count", 2, operator="NotIn")], pod(0), Match(), id="success never matches"),
        pytest.param([exit_codes("Ignore", 0)], pod(0), Match(), id="zero never matches"),
        pytest.param([exit_codes("Ignore", 1)], pod(None), Match(), id="still running"),
        pytest.param([exit_codes("Ignore", 1, container="other")], pod(1), Match(), id="other container"),
        pytest.param([exit_codes("Ignore", 1, container="main")], pod(1), Match("Ignore"), id="named container"),
        pytest.param([exit_codes("Ignore", 3)], pod(1, init=3), Match("Ignore"), id="init container"),
        pytest.param([exit_codes("Ignore", 1, operator="Like")], pod(1), Match(), id="unknown operator"),
        pytest.param([exit_codes("FailJob", 42)], pod(42), Match("FailJob", FAIL_MAIN), id="fails the job"),
        pytest.param([exit_codes("FailIndex", 1)], pod(1), Match("FailIndex"), id="fails the index"),
        pytest.param([conditions("Ignore", "DisruptionTarget")], pod(disrupted=True), Match("Ignore"), id="condition"),
        pytest.param([conditions("Ignore", "DisruptionTarget", "False")], pod(disrupted=True), Match(), id="status"),
        pytest.param([conditions("Ignore", "Other")], pod(disrupted=True), Match(), id="other condition"),
        pytest.param(
            [conditions("FailJob", "DisruptionTarget")],
            pod(disrupted=True),
            Match("FailJob", "Pod ns/p has condition DisruptionTarget matching FailJob rule at index 0"),
            id="condition fails the job",
        ),
        pytest.param([exit_codes("Count", 1), exit_codes("Ignore", 1)], pod(1), Match("Count"), id="first rule wins"),
        pytest.param([exit_codes("New", 1), exit_codes("Ignore", 1)], pod(1), Match("Ignore"), id="unknown action"),
        pytest.param([{"action": "Ignore"}], pod(1), Match(), id="rule without requirement"),
    ],
)
def test_first_matching_rule_decides(rules: list[dict[str, Any]], failed: Pod, expected: Match) -> None:
    assert match(policy(*rules), failed) == expected


def test_only_ignored_failures_do_not_count() -> None:
    assert not Match("Ignore").counts
    assert Match("Count").counts and Match("FailIndex").counts and Match().counts


def test_without_policy_all_failures_count() -> None:
    assert match(None, pod()) == Match()
    assert failing_message(None, [pod(42)]) is None


def test_one_pod_fails_the_job() -> None:
    rules = policy(exit_codes("FailJob", 42))
    assert failing_message(rules, [pod(1), pod(42)]) == FAIL_MAIN
    assert failing_message(rules, [pod(1)]) is None
