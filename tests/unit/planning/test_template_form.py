"""Equivalent pod templates of older releases, of other clients, and in manually written JSON."""

import copy
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kcm_cli.machinery.codec import Doc
from kcm_cli.planning import template_form
from kcm_cli.planning.template_form import meaning_as, same_when_defaulted, serialised

UPSTREAM = Path("/work/kube/src/pkg/controller/statefulset/testdata")

FULL: dict[str, Any] = {
    "metadata": {"labels": {"app": "web"}, "annotations": {"creationTimestamp": "yesterday", "empty": ""}},
    "spec": {
        "containers": [
            {
                "name": "web",
                "image": "registry.example:5000/web:1",
                "imagePullPolicy": "IfNotPresent",
                "args": ["-v", ""],
                "env": [
                    {"name": "PLAIN", "value": "1"},
                    {"name": "NODE", "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": "spec.nodeName"}}},
                    {
                        "name": "MEM",
                        "valueFrom": {"resourceFieldRef": {"divisor": "0", "resource": "limits.memory"}},
                    },
                ],
                "ports": [{"containerPort": 80, "protocol": "TCP"}],
                "readinessProbe": {
                    "httpGet": {"path": "/ready", "port": 80, "scheme": "HTTP"},
                    "failureThreshold": 3,
                    "periodSeconds": 10,
                    "successThreshold": 1,
                    "timeoutSeconds": 1,
                },
                "resources": {"limits": {"cpu": "500m", "memory": "1Gi"}, "requests": {"cpu": "250m"}},
                "securityContext": {"privileged": False, "procMount": "Default", "runAsUser": 0},
                "terminationMessagePath": "/dev/termination-log",
                "terminationMessagePolicy": "File",
                "volumeMounts": [{"mountPath": "/scratch", "name": "scratch"}],
            }
        ],
        "dnsPolicy": "ClusterFirst",
        "nodeSelector": {"disk": "ssd"},
        "restartPolicy": "Always",
        "schedulerName": "default-scheduler",
        "securityContext": {},
        "serviceAccount": "web",
        "serviceAccountName": "web",
        "terminationGracePeriodSeconds": 30,
        "tolerations": [{"operator": "Exists"}],
        "volumes": [
            {"name": "scratch", "emptyDir": {"sizeLimit": "1Gi"}},
            {"name": "settings", "configMap": {"name": "settings", "defaultMode": 420}},
            {
                "name": "token",
                "projected": {
                    "defaultMode": 420,
                    "sources": [{"serviceAccountToken": {"expirationSeconds": 3600, "path": "token"}}],
                },
            },
        ],
    },
}
"""A template as a 1.36 API server returns it: all defaults filled in."""

_CONTAINER = ("spec", "containers", 0)
SPELLINGS: list[tuple[tuple[str | int, ...], object]] = [
    (("metadata", "creationTimestamp"), None),
    (("metadata", "name"), ""),
    (("metadata", "finalizers"), []),
    (("metadata", "ownerReferences"), None),
    (("spec", "hostNetwork"), False),
    (("spec", "initContainers"), []),
    (("spec", "initContainers"), None),
    (("spec", "affinity"), None),
    (("spec", "overhead"), {}),
    (("spec", "hostname"), ""),
    ((*_CONTAINER, "command"), []),
    ((*_CONTAINER, "stdin"), False),
    ((*_CONTAINER, "workingDir"), ""),
    ((*_CONTAINER, "lifecycle"), None),
    ((*_CONTAINER, "args", 1), None),
    ((*_CONTAINER, "ports", 0, "hostPort"), 0),
    ((*_CONTAINER, "resources", "claims"), []),
    ((*_CONTAINER, "readinessProbe", "initialDelaySeconds"), 0),
    ((*_CONTAINER, "volumeMounts", 0, "readOnly"), False),
    (("spec", "tolerations", 0, "key"), ""),
    (("spec", "volumes", 1, "configMap", "items"), None),
]
"""By path: a value that means the same as none (or as the one that is there)."""

NUMBERS: list[tuple[tuple[str | int, ...], object]] = [
    ((*_CONTAINER, "resources", "limits", "memory"), "1073741824"),
    ((*_CONTAINER, "resources", "limits", "memory"), "1024Mi"),
    ((*_CONTAINER, "resources", "limits", "cpu"), 0.5),
    ((*_CONTAINER, "resources", "limits", "cpu"), "0.50"),
    ((*_CONTAINER, "resources", "requests", "cpu"), "250e-3"),
    (("spec", "volumes", 0, "emptyDir", "sizeLimit"), "1048576Ki"),
    ((*_CONTAINER, "env", 2, "valueFrom", "resourceFieldRef", "divisor"), None),
]
"""By path: the same quantity in other words."""

DEFAULTED: list[tuple[str | int, ...]] = [
    *((*_CONTAINER, name) for name in ("terminationMessagePath", "terminationMessagePolicy", "imagePullPolicy")),
    *((*_CONTAINER, "readinessProbe", name) for name in ("failureThreshold", "periodSeconds", "timeoutSeconds")),
    (*_CONTAINER, "readinessProbe", "httpGet", "scheme"),
    (*_CONTAINER, "ports", 0, "protocol"),
    (*_CONTAINER, "env", 1, "valueFrom", "fieldRef", "apiVersion"),
    *(("spec", name) for name in ("dnsPolicy", "restartPolicy", "schedulerName", "securityContext")),
    ("spec", "terminationGracePeriodSeconds"),
    ("spec", "serviceAccount"),
    ("spec", "volumes", 1, "configMap", "defaultMode"),
    ("spec", "volumes", 2, "projected", "defaultMode"),
    ("spec", "volumes", 2, "projected", "sources", 0, "serviceAccountToken", "expirationSeconds"),
]
"""Fields that an API server fills in with what ``FULL`` has there."""

CHANGES: list[tuple[tuple[str | int, ...], object]] = [
    (("metadata", "annotations", "creationTimestamp"), "today"),
    (("metadata", "annotations", "other"), ""),
    (("metadata", "labels", "app"), "db"),
    (("spec", "automountServiceAccountToken"), False),
    (("spec", "affinity"), {}),
    (("spec", "terminationGracePeriodSeconds"), 0),
    (("spec", "fieldOfTheFuture"), {"a": 1}),
    (("spec", "nodeSelector", "creationTimestamp"), ""),
    ((*_CONTAINER, "args"), ["-v"]),
    ((*_CONTAINER, "ports", 0, "containerPort"), 81),
    ((*_CONTAINER, "readinessProbe", "httpGet", "port"), "80"),
    ((*_CONTAINER, "resources", "limits", "memory"), "1G"),
    ((*_CONTAINER, "securityContext", "runAsUser"), 1),
    ((*_CONTAINER, "securityContext", "runAsNonRoot"), False),
    (("spec", "volumes", 0, "emptyDir", "medium"), "Memory"),
]


def edited(template: dict[str, Any], path: tuple[str | int, ...], value: object) -> dict[str, Any]:
    """A copy with a value at a path; ``...`` removes it."""
    made = copy.deepcopy(template)
    node: Any = made
    for part in path[:-1]:
        node = node[part]
    if value is ...:
        del node[path[-1]]
    else:
        node[path[-1]] = value
    return made


def respelt(template: dict[str, Any], chosen: list[tuple[tuple[str | int, ...], object]]) -> dict[str, Any]:
    for path, value in chosen:
        template = edited(template, path, value)
    return template


def test_templates_from_a_server_are_serialised_unchanged():
    minimal = edited(FULL, (*_CONTAINER, "args", 1), "x")
    assert serialised(minimal) == minimal
    assert serialised(minimal, defaulted=True) == minimal


@given(chosen=st.lists(st.sampled_from(SPELLINGS + NUMBERS), unique_by=lambda one: one[0]))
@settings(deadline=None)
def test_equivalent_templates_are_equal(chosen):
    assert meaning_as(FULL)(respelt(FULL, chosen))


@given(
    chosen=st.lists(st.sampled_from(SPELLINGS), unique_by=lambda one: one[0]),
    absent=st.lists(st.sampled_from(DEFAULTED), unique=True),
)
@settings(deadline=None)
def test_equivalent_templates_and_defaults_are_serialised_alike(chosen, absent):
    old = respelt(FULL, [*chosen, *((path, ...) for path in absent)])
    assert same_when_defaulted(old, FULL) and same_when_defaulted(FULL, old)
    assert serialised(respelt(FULL, chosen)) == serialised(FULL)


@pytest.mark.parametrize(("path", "value"), CHANGES, ids=lambda one: str(one))
def test_changes_are_detected(path, value):
    changed = edited(FULL, path, value)
    assert not meaning_as(FULL)(changed)
    assert not same_when_defaulted(FULL, changed) and not same_when_defaulted(changed, FULL)


def test_revisions_distinguish_quantities_as_go_does():
    path = (*_CONTAINER, "resources", "limits", "memory")
    assert not same_when_defaulted(FULL, edited(FULL, path, "1073741824"))  # as upstream: the text is kept
    assert same_when_defaulted(FULL, edited(FULL, (*_CONTAINER, "resources", "limits", "cpu"), "0.5"))


@pytest.mark.parametrize(
    ("image", "policy"),
    [
        ("i", "Always"), ("i:1", "IfNotPresent"), ("i:latest", "Always"), ("h:5/i", "Always"),
        ("h:5/i:2", "IfNotPresent"), (f"i@sha256:{'0' * 64}", "IfNotPresent"),
        (f"i:latest@sha256:{'0' * 64}", "Always"), ("NoImage", "IfNotPresent"), ("", "IfNotPresent"),
    ],
)  # fmt: skip
def test_pull_policies(image, policy):
    template: Doc = {"spec": {"containers": [{"name": "c", "image": image}]}}
    (container,) = serialised(template, defaulted=True)["spec"]["containers"]  # type: ignore[index]
    assert container["imagePullPolicy"] == policy


def test_a_volume_without_a_source_is_an_empty_directory():
    spec: Any = serialised({"spec": {"volumes": [{"name": "v"}, {"name": "w", "nfs": {}}]}}, defaulted=True)["spec"]
    assert spec["volumes"] == [{"name": "v", "emptyDir": {}}, {"name": "w", "nfs": {"server": "", "path": ""}}]


@pytest.mark.parametrize("odd", [{"spec": []}, {"metadata": "x", "spec": {"containers": {}}}, {"spec": {"volumes": 1}}])
def test_an_invalid_template_equals_only_itself(odd):
    assert meaning_as(odd)(copy.deepcopy(odd)) and not meaning_as(odd)(FULL)
    assert same_when_defaulted(odd, odd) and not same_when_defaulted(odd, FULL)


def test_every_field_with_a_default_is_known():
    for type_, defaults in template_form._DEFAULTS.items():
        fields = {name for _, name, _ in template_form.go_types.structs()[type_]}
        fields |= {name for _, name, _ in template_form.go_types.structs()["v1.VolumeSource"]}
        assert defaults.keys() <= fields


@pytest.mark.skipif(not UPSTREAM.exists(), reason="no source of Kubernetes here")
@pytest.mark.parametrize("stored", ["1.33.0", "1.34.0"])
@pytest.mark.parametrize("written", ["1.33.0", "1.34.0"])
def test_upstreams_pairs(stored, written):
    set_ = json.loads((UPSTREAM / f"compatibility_set_{stored}.json").read_text())
    revision = json.loads((UPSTREAM / f"compatibility_revision_{written}.json").read_text())
    template = {key: value for key, value in revision["data"]["spec"]["template"].items() if key != "$patch"}
    assert same_when_defaulted(template, set_["spec"]["template"])
