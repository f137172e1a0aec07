"""The tokens that are unused, and the actions for them."""

from datetime import UTC, datetime
from typing import Any

import pytest

from kcm_cli.api.core import ConfigMap, ObjectReference, Secret, ServiceAccount
from kcm_cli.api.well_known import ACCOUNT_NAME, ACCOUNT_TOKEN, ACCOUNT_UID
from kcm_cli.controllers.legacy_serviceaccount_token_cleaner import plan
from kcm_cli.controllers.legacy_serviceaccount_token_cleaner.plan import Limits
from kcm_cli.controllers.legacy_serviceaccount_token_cleaner.pod_secrets import POD_SECRETS, secrets_of
from kcm_cli.machinery import codec
from kcm_cli.machinery.meta import ObjectMeta
from kcm_cli.planning.actions import Delete, Patch

DAY = 24 * 3600.0
NOW = datetime(2026, 3, 31, 12, tzinfo=UTC)
LIMIT = Limits(datetime(2026, 3, 1, 12, tzinfo=UTC))


def tracking(since: str | None) -> ConfigMap:
    data = None if since is None else {"since": since}
    return ConfigMap(metadata=ObjectMeta(name="tracking", namespace="kube-system"), data=data)


def secret(created: str = "2026-01-01T00:00:00Z", type_: str = ACCOUNT_TOKEN, **labels: str) -> Secret:
    named = {f"kubernetes.io/legacy-token-{name.replace('_', '-')}": value for name, value in labels.items()}
    meta = ObjectMeta(name="t", namespace="n", uid="u", resource_version="7", creation_timestamp=created, labels=named)
    return Secret(metadata=meta, type=type_)


@pytest.mark.parametrize(
    ("since", "moment"),
    [
        pytest.param("2026-02-28", LIMIT.moment, id="for more than the period"),
        pytest.param("2026-03-01", None, id="the first whole day is too late by half a day"),
        pytest.param("2026-03-30", None, id="since yesterday"),
        pytest.param("9999-12-31", None, id="the last day that there is"),
    ],
)
def test_uses_must_be_tracked_for_a_whole_period_after_the_first_day(since: str, moment: datetime | None) -> None:
    found = plan.limits(tracking(since), NOW, 30 * DAY)
    assert (found.moment if found else None) == moment


@pytest.mark.parametrize("since", [None, "", "yesterday", "2026-02-30", "2026-2-3", "20260203", "2026-W01-1"])
def test_a_missing_start_of_tracking_is_an_error(since: str | None) -> None:
    with pytest.raises(plan.TrackingUnknown, match="kube-system/tracking: data.since"):
        plan.limits(tracking(since), NOW, DAY)


@pytest.mark.parametrize(
    ("token", "unused"),
    [
        pytest.param(secret(), True, id="never used"),
        pytest.param(secret("2026-03-01T11:59:59Z"), True, id="just old enough"),
        pytest.param(secret("2026-03-01T12:00:00Z"), False, id="too young"),
        pytest.param(secret(type_="Opaque"), False, id="another type"),
        pytest.param(secret(last_used="2026-02-28"), True, id="used before"),
        pytest.param(secret(last_used="2026-03-01"), False, id="used on the day"),
        pytest.param(secret(last_used="2026-03-30"), False, id="used since"),
    ],
)
def test_unused(token: Secret, unused: bool) -> None:
    assert plan.is_unused(token, LIMIT) is unused


@pytest.mark.parametrize("used", ["", "long-ago", "2026-13-01"])
def test_an_invalid_date_of_use_is_an_error(used: str) -> None:
    with pytest.raises(plan.InvalidDate):
        plan.is_unused(secret(last_used=used), LIMIT)


@pytest.mark.parametrize(
    ("invalid_since", "action"),
    [
        pytest.param(None, Patch, id="not marked"),
        pytest.param("", Patch, id="empty"),
        pytest.param("soon", Patch, id="no day"),
        pytest.param("2026-03-02", type(None), id="marked not long ago"),
        pytest.param("2026-03-01", type(None), id="marked on the day"),
        pytest.param("2026-02-28", Delete, id="marked long ago"),
    ],
)
def test_mark_unmark_or_delete(invalid_since: str | None, action: type) -> None:
    labels = {} if invalid_since is None else {"invalid_since": invalid_since}
    assert isinstance(plan.plan(secret(**labels), LIMIT, NOW), action)


@pytest.mark.parametrize(
    ("listed", "uid", "generated"),
    [
        pytest.param(("t",), "", True, id="listed"),
        pytest.param(("t",), "account", True, id="of this account"),
        pytest.param(("t",), "earlier", False, id="of an earlier account of the name"),
        pytest.param(("other",), "", False, id="created by a user"),
    ],
)
def test_generated_tokens_are_listed_by_the_account(listed: tuple[str, ...], uid: str, generated: bool) -> None:
    account = ServiceAccount(
        metadata=ObjectMeta(name="a", namespace="n", uid="account"),
        secrets=tuple(ObjectReference(name=name) for name in listed),
    )
    notes = {ACCOUNT_NAME: "a", **({ACCOUNT_UID: uid} if uid else {})}
    token = Secret(metadata=ObjectMeta(name="t", namespace="n", annotations=notes), type=ACCOUNT_TOKEN)
    assert plan.account_of(token) == "n/a"
    assert plan.was_generated(token, account) is generated
    assert plan.was_generated(token, None) is False


def test_writes_have_preconditions() -> None:
    token = secret(last_used="2026-01-05")
    labels = {"kubernetes.io/legacy-token-invalid-since": "2026-03-31"}
    assert plan.mark(token, NOW).body == {"metadata": {"uid": "u", "resourceVersion": "7", "labels": labels}}
    assert plan.removal(token).resource_version == "7"


VOLUMES: list[tuple[str, dict[str, Any]]] = [
    ("azureFile", {"secretName": "s"}),
    ("secret", {"secretName": "s"}),
    ("cephfs", {"secretRef": {"name": "s"}}),
    ("cinder", {"secretRef": {"name": "s"}}),
    ("flexVolume", {"secretRef": {"name": "s"}}),
    ("rbd", {"secretRef": {"name": "s"}}),
    ("scaleIO", {"secretRef": {"name": "s"}}),
    ("iscsi", {"secretRef": {"name": "s"}}),
    ("storageos", {"secretRef": {"name": "s"}}),
    ("csi", {"nodePublishSecretRef": {"name": "s"}}),
    ("projected", {"sources": [{"configMap": {"name": "c"}}, {"secret": {"name": "s"}}]}),
]
ENV = {"env": [{"name": "A", "value": "x"}, {"name": "B", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}}]}
SPECS: list[dict[str, Any]] = [
    {"imagePullSecrets": [{"name": "s"}]},
    {"containers": [{"envFrom": [{"configMapRef": {"name": "c"}}, {"secretRef": {"name": "s"}}]}]},
    {"containers": [ENV]},
    {"initContainers": [ENV]},
    {"ephemeralContainers": [ENV]},
    *({"volumes": [{"name": "v", kind: source}, {"name": "e", "emptyDir": {}}]} for kind, source in VOLUMES),
]


@pytest.mark.parametrize("spec", SPECS, ids=lambda spec: str(spec)[:60])
def test_secrets_of_pods(spec: dict[str, Any]) -> None:
    assert list(secrets_of(POD_SECRETS.decode(codec.encode({"spec": spec})))) == ["s"]
