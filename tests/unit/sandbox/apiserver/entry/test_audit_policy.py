"""Audit policies: which rule covers a request, and which policies are refused."""

from typing import Any

import pytest
import yaml

from kcm_cli.sandbox.apiserver.entry.audit_policy import DEFAULT, Level, policy_of
from kcm_cli.sandbox.apiserver.routing.requestinfo import resolve
from kcm_cli.sandbox.apiserver.types import User

ALICE = User("alice", groups=("devs", "system:authenticated"))
PODS = "/api/v1/namespaces/shop/pods"


def policy(rules: str, more: str = "") -> Any:
    return policy_of(yaml.safe_load(f"apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: {rules}\n{more}"))


def level(rules: str, method: str = "DELETE", path: str = f"{PODS}/p", user: User = ALICE) -> str:
    info, _ = resolve(method, path, {})
    return str(policy(rules).wants(user, info).level.text)


@pytest.mark.parametrize(
    "rule",
    [
        "{}",
        "{users: [alice]}",
        "{userGroups: [ops, devs]}",
        "{verbs: [delete]}",
        "{namespaces: [shop]}",
        '{resources: [{group: ""}]}',
        '{resources: [{group: "*", resources: ["*"]}]}',
        '{resources: [{group: "", resources: [pods], resourceNames: [p]}]}',
        '{resources: [{group: "", resources: ["pods/*"]}]}',
    ],
)
def test_a_rule_covers_a_request(rule: str) -> None:
    assert level(f"[{{level: Metadata, {rule[1:-1]}}}]") == "Metadata"


@pytest.mark.parametrize(
    "rule",
    [
        "{users: [bob]}",
        "{userGroups: [ops]}",
        "{verbs: [create]}",
        '{namespaces: [other, ""]}',
        "{resources: [{group: apps}]}",
        '{resources: [{group: "", resources: [pods/status]}]}',
        '{resources: [{group: "", resources: ["*/status"]}]}',
        '{resources: [{group: "", resources: [pods], resourceNames: [q]}]}',
        '{nonResourceURLs: ["*"]}',
    ],
)
def test_a_rule_does_not_cover_a_request(rule: str) -> None:
    assert level(f"[{{level: Metadata, {rule[1:-1]}}}]") == "None"


@pytest.mark.parametrize(
    ("resource", "expected"), [("pods/status", "Request"), ("*/status", "Request"), ("pods", "None")]
)
def test_a_subresource_is_named(resource: str, expected: str) -> None:
    rules = f'[{{level: Request, resources: [{{group: "", resources: ["{resource}"]}}]}}]'
    assert level(rules, "PATCH", f"{PODS}/p/status") == expected


def test_paths_that_are_no_resources() -> None:
    rules = '[{level: None, nonResourceURLs: [/healthz*, /version]}, {level: Metadata, nonResourceURLs: ["*"]}]'
    found = {path: level(rules, "GET", path) for path in ("/healthz/ping", "/version", "/version/x", "/metrics")}
    assert found == {"/healthz/ping": "None", "/version": "None", "/version/x": "Metadata", "/metrics": "Metadata"}
    assert level(rules) == "None"


def test_the_first_rule_decides_and_adds_its_stages() -> None:
    found = policy(
        "[{level: Request, verbs: [delete], omitStages: [Panic]}, {level: Metadata}]",
        "omitStages: [RequestReceived]\nomitManagedFields: true",
    ).wants(ALICE, resolve("DELETE", f"{PODS}/p", {})[0])
    assert (found.level, found.without, found.managed_fields) == (Level.REQUEST, {"RequestReceived", "Panic"}, False)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("kind: Policy", "a policy needs apiVersion: audit.k8s.io/v1 and kind: Policy"),
        ("[]", "a policy needs apiVersion"),
        ("{apiVersion: v1, kind: ConfigMap}", "this is ConfigMap of v1, not Policy of audit.k8s.io/v1"),
        ("{apiVersion: audit.k8s.io/v1, kind: Policy, rules: []}", "at least one rule"),
        ("{apiVersion: audit.k8s.io/v1, kind: Policy, rules: [{level: All}]}", "Invalid enum value 'All'"),
        ("{apiVersion: audit.k8s.io/v1, kind: Policy, rules: [{}]}", "missing required field `level`"),
        ("{apiVersion: audit.k8s.io/v1, kind: Policy, rules: [{level: None, verb: [get]}]}", "unknown field `verb`"),
        ("{apiVersion: audit.k8s.io/v2, kind: Policy, rules: [{level: None}]}", "audit.k8s.io/v2"),
        (
            "{apiVersion: audit.k8s.io/v1, kind: Policy, rules: [{level: None, nonResourceURLs: [x]}]}",
            "rules[0]: nonResourceURLs: x must begin with /",
        ),
        (
            "{apiVersion: audit.k8s.io/v1, kind: Policy, rules: [{level: None, nonResourceURLs: [/x], "
            "namespaces: [n]}]}",
            "rules[0]: rules cannot apply to both",
        ),
        (
            '{apiVersion: audit.k8s.io/v1, kind: Policy, rules: [{level: None, resources: [{group: "", '
            "resourceNames: [x]}]}]}",
            "rules[0]: resourceNames requires at least one resource",
        ),
    ],
)
def test_an_invalid_policy_is_refused(text: str, problem: str) -> None:
    with pytest.raises(ValueError, match=".") as caught:
        policy_of(yaml.safe_load(text))
    assert problem in str(caught.value)


@pytest.mark.parametrize(
    ("method", "path", "expected"),
    [
        ("GET", PODS, Level.NONE),
        ("POST", PODS, Level.REQUEST_RESPONSE),
        ("POST", "/api/v1/namespaces/shop/secrets", Level.METADATA),
        ("POST", "/api/v1/namespaces/shop/serviceaccounts/s/token", Level.METADATA),
        ("PATCH", "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/n", Level.NONE),
        ("POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews", Level.NONE),
    ],
)
def test_without_a_file_writes_are_recorded_and_no_secrets(method: str, path: str, expected: Level) -> None:
    assert DEFAULT.wants(ALICE, resolve(method, path, {})[0]).level == expected
