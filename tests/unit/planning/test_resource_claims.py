"""The claims that pods use, and their owners."""

from typing import Any

import msgspec
import pytest

from kcm_cli.api.core import Pod
from kcm_cli.api.devices import DeviceToleration, ResourceClaim
from kcm_cli.api.scheduling import PodGroup
from kcm_cli.planning.resource_claims import (
    NotCreated,
    NotNeeded,
    Reference,
    Unsupported,
    claim_keys,
    consumer_of,
    is_reserved_for,
    named,
    not_for,
    tolerates,
)

META = {"name": "p", "namespace": "ns", "uid": "pod-uid"}
GROUP = {"schedulingGroup": {"podGroupName": "g"}}


def pod(entry: dict[str, Any], *statuses: dict[str, Any], **spec: Any) -> Pod:
    doc = {"metadata": META, "spec": {"resourceClaims": [entry]} | spec, "status": {"resourceClaimStatuses": statuses}}
    return msgspec.convert(doc, Pod)


def group(*entries: dict[str, Any]) -> PodGroup:
    meta = {"name": "g", "namespace": "ns", "uid": "group-uid"}
    return msgspec.convert({"metadata": meta, "spec": {"resourceClaims": entries}}, PodGroup)


def claim(kind: str = "", uid: str = "", version: str = "v1", *users: dict[str, str]) -> ResourceClaim:
    meta: dict[str, Any] = {"name": "c", "namespace": "ns"}
    if kind:
        name = "p" if kind == "Pod" else "g"
        meta["ownerReferences"] = [{"apiVersion": version, "kind": kind, "name": name, "uid": uid, "controller": True}]
    return msgspec.convert({"metadata": meta, "status": {"reservedFor": users}}, ResourceClaim)


TEMPLATE = {"name": "e", "resourceClaimTemplateName": "t"}
NAMED = {"name": "e", "resourceClaimName": "c"}
ALPHA = "scheduling.k8s.io/v1alpha2"


@pytest.mark.parametrize(
    ("entry", "statuses", "expected", "keys"),
    [
        pytest.param(NAMED, [], Reference("c", generated=False), ("ns/c",), id="by name"),
        pytest.param(TEMPLATE, [], NotCreated(), (), id="not created yet"),
        pytest.param(TEMPLATE, [{"name": "x", "resourceClaimName": "y"}], NotCreated(), (), id="another one created"),
        pytest.param(TEMPLATE, [{"name": "e"}], NotNeeded(), (), id="not needed"),
        pytest.param(
            TEMPLATE,
            [{"name": "e", "resourceClaimName": "p-e-1"}],
            Reference("p-e-1", generated=True),
            ("ns/p-e-1",),
            id="created",
        ),
    ],
)
def test_the_claim_behind_an_entry(entry: Any, statuses: Any, expected: object, keys: tuple[str, ...]) -> None:
    user = pod(entry, *statuses)
    assert named(user, user.spec.resource_claims[0]) == expected
    assert claim_keys(user) == keys


@pytest.mark.parametrize(
    ("user", "text"),
    [
        (pod({"name": "e"}), 'pod "ns/p", spec.resourceClaim "e": none of the supported fields are set'),
        (group({"name": "e"}), "PodGroup ns/g, spec.resourceClaim e: none of the supported fields are set"),
    ],
)
def test_an_entry_of_a_newer_api(user: Pod | PodGroup, text: str) -> None:
    with pytest.raises(Unsupported) as caught:
        named(user, user.spec.resource_claims[0])
    assert str(caught.value) == text
    assert claim_keys(user) == ()


@pytest.mark.parametrize(
    ("found", "groups", "reason"),
    [
        pytest.param(claim("Pod", "pod-uid"), False, "", id="own"),
        pytest.param(claim(), False, "(Pod is not owner)", id="without an owner"),
        pytest.param(claim("Pod", "old-uid"), False, "(Pod is not owner)", id="a former pod's"),
        pytest.param(claim("PodGroup", "group-uid", ALPHA), False, "(Pod is not owner)", id="the group's, gate off"),
        pytest.param(claim("PodGroup", "group-uid", ALPHA), True, "", id="the group's"),
        pytest.param(claim("PodGroup", "group-uid", "scheduling.k8s.io/v9"), True, "", id="of another version"),
        pytest.param(
            claim("PodGroup", "group-uid", "other/v1"),
            True,
            "(neither Pod nor PodGroup g is the owner)",
            id="other API",
        ),
    ],
)
def test_owner_of_a_claim(found: ResourceClaim, groups: bool, reason: str) -> None:
    expected = f"ResourceClaim ns/c was not created for Pod ns/p {reason}" if reason else ""
    assert not_for(pod(TEMPLATE, **GROUP), found, groups=groups) == expected


@pytest.mark.parametrize(
    ("consumer", "groups", "expected"),
    [
        pytest.param({"resource": "pods", "name": "p", "uid": "pod-uid"}, False, True, id="pod"),
        pytest.param({"resource": "pods", "name": "p", "uid": "other"}, False, False, id="another pod of the name"),
        pytest.param(
            {"apiGroup": "scheduling.k8s.io", "resource": "podgroups", "name": "g", "uid": "u"}, True, True, id="group"
        ),
        pytest.param(
            {"apiGroup": "scheduling.k8s.io", "resource": "podgroups", "name": "g", "uid": "u"}, False, False, id="off"
        ),
        pytest.param(
            {"apiGroup": "scheduling.k8s.io", "resource": "podgroups", "name": "h", "uid": "u"}, True, False, id="other"
        ),
    ],
)
def test_whether_a_claim_is_reserved(consumer: dict[str, str], groups: bool, expected: bool) -> None:
    assert (
        is_reserved_for(pod(NAMED, **GROUP), claim("", "", "v1", consumer).status.reserved_for, groups=groups)
        is expected
    )


@pytest.mark.parametrize(
    ("entries", "expected"),
    [
        pytest.param([], "pod-uid", id="the group has none"),
        pytest.param([TEMPLATE], "group-uid", id="the group's"),
        pytest.param([{"name": "e", "resourceClaimTemplateName": "u"}], "pod-uid", id="another template"),
        pytest.param([{"name": "f", "resourceClaimTemplateName": "t"}], "pod-uid", id="another entry"),
    ],
)
def test_for_whom_a_claim_is_reserved(entries: list[dict[str, Any]], expected: str) -> None:
    user = pod(TEMPLATE, **GROUP)
    assert consumer_of(user, group(*entries), user.spec.resource_claims[0]).uid == expected


@pytest.mark.parametrize(
    ("toleration", "expected"),
    [
        ({}, False),
        ({"operator": "Exists"}, True),
        ({"key": "k", "operator": "Exists"}, True),
        ({"key": "k", "value": "v"}, True),
        ({"key": "k", "operator": "Equal", "value": "w"}, False),
        ({"key": "l", "operator": "Exists"}, False),
        ({"effect": "NoExecute", "operator": "Exists"}, True),
        ({"effect": "NoSchedule", "operator": "Exists"}, False),
        ({"key": "k", "operator": "Gt", "value": "v"}, False),
    ],
)
def test_tolerations(toleration: dict[str, str], expected: bool) -> None:
    assert tolerates(msgspec.convert(toleration, DeviceToleration), "k", "v", "NoExecute") is expected
