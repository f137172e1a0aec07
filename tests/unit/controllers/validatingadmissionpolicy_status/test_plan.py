"""The kinds that a policy matches, and the warnings about its expressions."""

from typing import Any

import pytest

from kcm_cli.api.admissionregistration import VALIDATING_ADMISSION_POLICIES, ValidatingAdmissionPolicy
from kcm_cli.api.resource import GVR
from kcm_cli.controllers.validatingadmissionpolicy_status import kinds, plan
from kcm_cli.controllers.validatingadmissionpolicy_status.kinds import Kind
from kcm_cli.controllers.validatingadmissionpolicy_status.plan import Declared
from kcm_cli.machinery import codec
from kcm_cli.machinery.cel.declarations import Declarations
from kcm_cli.rest.served_resources import Discovery, Group, ServedResource

Rule = tuple[list[str], list[str], list[str]]


def served(*resources: str) -> Discovery:
    """``group/version/plural/Kind``."""
    found: dict[tuple[str, str], tuple[ServedResource, ...]] = {}
    for text in resources:
        group, version, plural, kind = text.split("/")
        one = ServedResource(GVR(group, version, plural), kind, "", True, frozenset())
        found[group, version] = (*found.get((group, version), ()), one)
    return Discovery(tuple(Group(group, (version,), version) for group, version in found), found)


SERVED = served(
    "/v1/pods/Pod", "/v1/events/Event", "apps/v1/deployments/Deployment", "events.k8s.io/v1/events/Event",
    *(f"many/v1/k{number:02}s/K{number:02}" for number in range(12)),
)  # fmt: skip


def policy(
    *rules: Rule,
    validations: list[dict[str, str]] | None = None,
    variables: dict[str, str] | None = None,
    params: dict[str, str] | None = None,
) -> ValidatingAdmissionPolicy:
    listed = [{"apiGroups": g, "apiVersions": v, "resources": r} for g, v, r in rules]
    spec: dict[str, Any] = {"matchConstraints": {"resourceRules": listed}, "validations": validations or []}
    spec["variables"] = [{"name": name, "expression": text} for name, text in (variables or {}).items()]
    if params:
        spec["paramKind"] = params
    metadata = {"name": "p", "uid": "u", "generation": 3}
    return VALIDATING_ADMISSION_POLICIES.decode(codec.encode({"metadata": metadata, "spec": spec}))


POD, DEPLOYMENT = Kind("", "v1", "Pod"), Kind("apps", "v1", "Deployment")
PODS: Rule = ([""], ["v1"], ["pods"])
EVENTS = [Kind("", "v1", "Event"), Kind("events.k8s.io", "v1", "Event")]


@pytest.mark.parametrize(
    ("rules", "expected"),
    [
        pytest.param([(["apps"], ["v1"], ["deployments"])], [DEPLOYMENT], id="one"),
        pytest.param([(["apps"], ["v1"], ["Deployment"])], [DEPLOYMENT], id="by its singular"),
        pytest.param([(["apps", ""], ["v1"], ["pods", "deployments"])], [POD, DEPLOYMENT], id="sorted"),
        pytest.param(
            [([""], ["v1"], ["pods"]), (["apps"], ["v1"], ["deployments"])], [POD, DEPLOYMENT], id="two rules"
        ),
        pytest.param([([""], ["v1"], ["events"])], EVENTS, id="no group is any group"),
        pytest.param([(["events.k8s.io"], ["v1"], ["events"])], EVENTS[1:], id="a group is that group"),
        pytest.param([(["*"], ["v1"], ["pods"])], [], id="any group"),
        pytest.param([(["apps"], ["*", "v1"], ["deployments"])], [], id="any version"),
        pytest.param([([""], ["v1"], ["*", "pods/status", "pods/*", "pods"])], [POD], id="any resource"),
        pytest.param([(["apps"], ["v2"], ["deployments"])], [], id="not served"),
        pytest.param([], [], id="no rules"),
        pytest.param(
            [(["many"], ["v1"], [f"k{n:02}s" for n in range(12)]), ([""], ["v1"], ["pods"])],
            [Kind("many", "v1", f"K{n:02}") for n in range(10)],
            id="ten of a rule, and no more",
        ),
    ],
)
def test_kinds(rules: list[Rule], expected: list[Kind]) -> None:
    assert kinds.kinds(policy(*rules), SERVED) == expected


@pytest.mark.parametrize(
    ("rules", "unknown"),
    [
        ([(["apps"], ["v1"], ["deployments", "others"])], True),
        ([(["apps"], ["v1"], ["deployments"])], False),
        ([(["*"], ["v1"], ["others"])], False),
    ],
)
def test_unknown_kinds_are_discovered_again(rules: list[Rule], unknown: bool) -> None:
    assert kinds.unknown(policy(*rules), SERVED) is unknown


@pytest.mark.parametrize(
    ("params", "expected"),
    [
        (None, None),
        ({"apiVersion": "v1", "kind": "ConfigMap"}, Kind("", "v1", "ConfigMap")),
        ({"apiVersion": "a.b/v1", "kind": "C"}, Kind("a.b", "v1", "C")),
        ({"apiVersion": "a/b/c", "kind": "C"}, None),
    ],
)
def test_kinds_of_parameters(params: dict[str, str] | None, expected: Kind | None) -> None:
    assert kinds.param_kind(policy(params=params)) == expected


def declared(name: str, **properties: dict[str, Any]) -> Declared:
    declarations = Declarations()
    schema = {"type": "object", "properties": properties}
    kind = declarations.declare(schema, name, root=True)
    assert kind is not None
    return Declared(kind, declarations)


SIZED = declared("Pod0", size={"type": "integer"}, spec={"type": "object", "properties": {"x": {"type": "string"}}})


def warnings_of(one: ValidatingAdmissionPolicy, params: Declared | None = None, **kinds_of: Declared) -> dict[str, str]:
    known = {POD: SIZED, **{Kind("apps", "v1", name): found for name, found in kinds_of.items()}}
    has = one.spec.param_kind is not None
    steps = list(plan.plan(one, known, params=has, declared_params=params))
    messages = sum(bool(validation.message_expression) for validation in one.spec.validations)
    checks = len(one.spec.validations) + messages + len(one.spec.variables)
    assert steps.count(None) == checks * len(known)  # so often others may run
    return {step.field_ref: step.text for step in steps if step is not None}


def validating(*texts: str, **options: Any) -> ValidatingAdmissionPolicy:
    return policy(validations=[{"expression": text} for text in texts], **options)


UNDEFINED = "/v1, Kind=Pod: ERROR: <input>:1:7: undefined field 'nope'\n | object.nope == 1\n | ......^\n"


def test_correct_expressions_have_no_warnings() -> None:
    texts = ("object.size > 1", "object.spec.x == 'a'", "oldObject == null", "request.name == object.metadata.name")
    assert warnings_of(validating(*texts)) == {}


def test_warnings_have_the_path_of_the_expression() -> None:
    found = warnings_of(policy(validations=[{"expression": "true"}, {"expression": "object.nope == 1"}]))
    assert found == {"spec.validations[1].expression": UNDEFINED}


def test_message_expressions_are_checked() -> None:
    found = warnings_of(policy(validations=[{"expression": "true", "messageExpression": "object.size + 'x'"}]))
    (text,) = found.values()
    assert [*found] == ["spec.validations[0].messageExpression"]
    assert "found no matching overload for '_+_' applied to '(int, string)'" in text


def test_each_kind_has_its_warning() -> None:
    (text,) = warnings_of(validating("object.nope == 1"), Other=declared("Other0")).values()
    assert text == UNDEFINED + "\n" + UNDEFINED.replace("/v1, Kind=Pod", "apps/v1, Kind=Other")


def test_variables_have_the_types_of_their_expressions() -> None:
    variables = {"size": "object.size", "twice": "variables.size * 2", "bad": "object.nope", "spec": "object.spec"}
    right = ("variables.twice > 1", "variables.bad.anything == 1", "variables.spec.anything == 1")
    assert warnings_of(validating(*right, variables=variables)) == {}
    (text,) = warnings_of(validating("variables.twice == 'x'", variables=variables)).values()
    assert "applied to '(int, string)'" in text


def test_parameters_without_a_schema_may_be_anything() -> None:
    one = validating("params.data.x == 1", params={"apiVersion": "v1", "kind": "ConfigMap"})
    assert warnings_of(one) == {}
    data = {"type": "object", "additionalProperties": {"type": "string"}}
    (text,) = warnings_of(one, declared("ConfigMap1", data=data)).values()
    assert "applied to '(string, int)'" in text


def test_params_without_a_param_kind() -> None:
    (text,) = warnings_of(validating("params.x == 1")).values()
    assert "undeclared reference to 'params'" in text


def test_the_status() -> None:
    one = policy()
    status: Any = plan.status(one, []).body
    assert status["status"] == {"observedGeneration": 3, "typeChecking": {}}
    status = plan.status(one, [plan.ExpressionWarning("spec.x", "bad")]).body
    assert status["metadata"] == {"name": "p", "uid": "u"}
    assert status["status"] == {
        "observedGeneration": 3,
        "typeChecking": {"expressionWarnings": [{"fieldRef": "spec.x", "warning": "bad"}]},
    }
