"""Names of claims, recorded claims, and pods that need a sync."""

from typing import Any

import msgspec
import pytest

from kcm_cli.api.core import PODS, Pod
from kcm_cli.api.devices import RESOURCE_CLAIM_TEMPLATES, RESOURCE_CLAIMS, ResourceClaim
from kcm_cli.controllers.resourceclaim import plan
from kcm_cli.controllers.resourceclaim.plan import CREATE, Caches
from kcm_cli.machinery import codec
from kcm_cli.planning.actions import ABSENT
from kcm_cli.planning.resource_claims import FINALIZER
from kcm_cli.runtime.store import Store, by_controller

META: dict[str, Any] = {"name": "p", "namespace": "ns", "uid": "u"}
TEMPLATE = [{"name": "e", "resourceClaimTemplateName": "t"}]
NAMED = [{"name": "e", "resourceClaimName": "c"}]
MADE = [{"name": "e", "resourceClaimName": "c"}]


def pod(entries: Any, *, meta: Any = META, status: Any = None, **spec: Any) -> Pod:
    doc = {"metadata": meta, "spec": {"resourceClaims": entries} | spec, "status": status or {}}
    return msgspec.convert(doc, Pod)


def seen(owner: str = "", allocated: bool = False, reserved: str = "") -> Caches:
    meta: dict[str, Any] = {"name": "c", "namespace": "ns"}
    if owner:
        meta["ownerReferences"] = [{"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": owner, "controller": True}]
    status = {"allocation": {} if allocated else None, "reservedFor": [{"uid": reserved}] if reserved else []}
    store: Store[ResourceClaim] = Store()
    store.put(msgspec.convert({"metadata": meta, "status": status}, ResourceClaim))
    return Caches(store, None)


NONE: Caches = Caches(Store(), None)
BOUND = {"nodeName": "n"}


@pytest.mark.parametrize(
    ("user", "caches", "expected"),
    [
        pytest.param(pod(TEMPLATE), NONE, True, id="to be created"),
        pytest.param(pod(TEMPLATE, status={"resourceClaimStatuses": MADE}), NONE, True, id="created and deleted"),
        pytest.param(pod(TEMPLATE, status={"resourceClaimStatuses": MADE}), seen("u"), False, id="created"),
        pytest.param(pod(TEMPLATE, status={"resourceClaimStatuses": MADE}), seen("v"), False, id="another owner's"),
        pytest.param(pod(TEMPLATE, status={"resourceClaimStatuses": [{"name": "e"}]}), NONE, False, id="not needed"),
        pytest.param(pod(TEMPLATE, meta=META | {"deletionTimestamp": "x"}), NONE, False, id="deleted"),
        pytest.param(pod(TEMPLATE, status={"phase": "Succeeded"}), NONE, False, id="over"),
        pytest.param(pod(NAMED), NONE, False, id="to be created manually"),
        pytest.param(pod(NAMED), seen(allocated=True), False, id="the scheduler's business"),
        pytest.param(pod(NAMED, **BOUND), seen(allocated=True), True, id="bound, not reserved"),
        pytest.param(pod(NAMED, **BOUND), seen(), False, id="bound, not allocated"),
        pytest.param(pod(NAMED, **BOUND), seen(allocated=True, reserved="u"), False, id="bound and reserved"),
        pytest.param(
            pod(NAMED, status={"phase": "Failed"}, **BOUND), seen(allocated=True), False, id="bound, but over already"
        ),
        pytest.param(pod([*NAMED, {"name": "f", "resourceClaimTemplateName": "t"}]), seen(), True, id="one of two"),
    ],
)
def test_pods_that_need_a_sync(user: Pod, caches: Caches, expected: bool) -> None:
    assert plan.needs_work(user, caches) is expected


@pytest.mark.parametrize(
    ("phase", "node", "deleting", "expected"),
    [
        ("Pending", "", False, False),
        ("Pending", "", True, True),
        ("Pending", "n", True, False),
        ("Running", "n", True, False),
        ("Succeeded", "n", False, True),
        ("Failed", "n", False, True),
    ],
)
def test_pods_that_use_no_claims_any_more(phase: str, node: str, deleting: bool, expected: bool) -> None:
    metadata = {"name": "p"} | (GOING if deleting else {})
    doc = {"metadata": metadata, "spec": {"nodeName": node}, "status": {"phase": phase}}
    assert plan.is_done(PODS.decode(codec.encode(doc))) is expected


@pytest.mark.parametrize(
    ("owner", "entry", "expected"),
    [
        ("p", "e", "p-e-"),
        ("p" * 40, "e" * 15, "p" * 40 + "-" + "e" * 15 + "-"),
        ("p" * 63, "e" * 63, "p" * 28 + "-" + "e" * 28),
        ("p" * 200, "gpu", "p" * 55 + "-"),
    ],
)
def test_the_name_of_a_generated_claim(owner: str, entry: str, expected: str) -> None:
    assert plan.generated_name(owner, entry) == expected


def test_recorded_claims_keep_the_order_of_the_spec() -> None:
    entries = [{"name": name, "resourceClaimTemplateName": "t"} for name in ("a", "b", "c", "d")]
    status = {"resourceClaimStatuses": [{"name": "b", "resourceClaimName": "p-b"}, {"name": "d"}]}
    found: Any = plan.status(PODS, pod(entries, status=status), {"a": "p-a"}).body
    expected = [{"name": "a", "resourceClaimName": "p-a"}, {"name": "b", "resourceClaimName": "p-b"}, {"name": "d"}]
    assert found["status"] == {"resourceClaimStatuses": expected}


def test_a_pod_is_found_by_its_templates() -> None:
    assert plan.template_keys(pod([*TEMPLATE, {"name": "f", "resourceClaimName": "c"}])) == ("ns/t",)


def test_the_claims_of_a_pod_include_the_one_for_extended_resources() -> None:
    status = {"extendedResourceClaimStatus": {"resourceClaimName": "x"}}
    assert [*plan.claims_of(pod(NAMED, status=status))] == ["ns/c", "ns/x"]


@pytest.mark.parametrize(
    ("user", "caches", "expected"),
    [
        pytest.param(pod(NAMED), NONE, None, id="named"),
        pytest.param(pod(TEMPLATE), NONE, CREATE, id="to be created"),
        pytest.param(pod(TEMPLATE, status={"resourceClaimStatuses": MADE}), NONE, CREATE, id="created and deleted"),
        pytest.param(pod(TEMPLATE, status={"resourceClaimStatuses": MADE}), seen("u"), None, id="recorded"),
        pytest.param(pod(TEMPLATE, status={"resourceClaimStatuses": MADE}), seen("v"), CREATE, id="of another owner"),
        pytest.param(pod(TEMPLATE, status={"resourceClaimStatuses": [{"name": "e"}]}), NONE, None, id="not needed"),
    ],
)
def test_an_entry(user: Pod, caches: Caches, expected: str | None) -> None:
    caches.claims.add_index(plan.OWNER, lambda claim: ())  # type: ignore[attr-defined]
    assert plan.plan_entry(user, None, user.spec.resource_claims[0], caches) == expected


def test_a_claim_of_another_namespace_is_not_made_for_a_pod() -> None:
    """Its tenant may know the pod's uid."""
    ref = {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "u", "controller": True}
    store: Store[ResourceClaim] = Store()
    store.add_index(plan.OWNER, by_controller)
    for namespace, name in (("tenant", "other"), ("ns", "c")):
        annotations = {plan.POD_CLAIM: "e"}
        meta = {"name": name, "namespace": namespace, "ownerReferences": [ref], "annotations": annotations}
        assert Caches(store, None).made_for(pod(TEMPLATE), "e") == ""
        store.put(msgspec.convert({"metadata": meta}, ResourceClaim))
    assert Caches(store, None).made_for(pod(TEMPLATE), "e") == "c"


RESERVED, ALLOCATION = ("status", "reservedFor"), ("status", "allocation")
GOING = {"deletionTimestamp": "2026-01-01T00:00:00Z"}


@pytest.mark.parametrize(
    ("meta", "remaining", "expected"),
    [
        pytest.param({}, ["a", "b"], {}, id="all hold it"),
        pytest.param({}, ["b"], {RESERVED: [{"uid": "b"}]}, id="one left"),
        pytest.param({}, [], {RESERVED: ABSENT}, id="the last one, without a finalizer"),
        pytest.param({"finalizers": [FINALIZER]}, [], {RESERVED: ABSENT, ALLOCATION: ABSENT}, id="the last one"),
        pytest.param({"finalizers": [FINALIZER], **GOING}, ["a", "b"], {}, id="being deleted, and held"),
    ],
)
def test_reservations(meta: dict[str, Any], remaining: list[str], expected: dict[object, object]) -> None:
    status = {"allocation": {}, "reservedFor": [{"uid": "a"}, {"uid": "b"}]}
    claim = RESOURCE_CLAIMS.decode(
        codec.encode({"metadata": {"name": "c", "namespace": "ns", **meta}, "status": status})
    )
    assert plan.plan_claim(claim, remaining) == expected


def test_an_unreserved_claim_is_freed_on_deletion() -> None:
    doc: Any = {"metadata": {"name": "c", "namespace": "ns", "finalizers": [FINALIZER]}, "status": {"allocation": {}}}
    assert plan.plan_claim(RESOURCE_CLAIMS.decode(codec.encode(doc)), []) == {}
    doc["metadata"] |= GOING
    assert plan.plan_claim(RESOURCE_CLAIMS.decode(codec.encode(doc)), []) == {ALLOCATION: ABSENT}


def test_a_claim_has_the_bytes_of_its_template() -> None:
    """Of opaque parameters an API server compares and keeps the bytes: repeated keys, forms of numbers, the order."""
    spec = (
        rb'{"devices":{"config":[{"opaque":{"driver":"d","parameters":'
        rb'{"b":"\u003c\u0026","a":1.50e2,"a":123456789012345678901234567890}}}]}}'
    )
    template = RESOURCE_CLAIM_TEMPLATES.decode(b'{"metadata":{"name":"t"},"spec":{"spec":%s}}' % spec)
    assert b'"spec":%s}' % spec in plan.claim_from(template, PODS, pod(TEMPLATE), "e")
