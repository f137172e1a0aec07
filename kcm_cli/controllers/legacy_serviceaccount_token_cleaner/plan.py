"""Decides which generated token Secrets are unused, and marks or deletes them.

A token that was not used for the whole period is marked as invalid; one that was invalid for another period is deleted.
Days are text (2026-01-02), which sorts by time; invalid text is ignored.

upstream: pkg/controller/serviceaccount/legacy_serviceaccount_token_cleaner.go
"""

from datetime import UTC, datetime, timedelta

import msgspec

from kcm_cli.api.core import SECRETS, ConfigMap, Secret, ServiceAccount
from kcm_cli.api.well_known import ACCOUNT_NAME, ACCOUNT_TOKEN, ACCOUNT_UID, INVALID_SINCE, LAST_USED
from kcm_cli.machinery.formats import is_date
from kcm_cli.machinery.kref import kobj
from kcm_cli.machinery.times import parse_time
from kcm_cli.planning.actions import Delete, Patch, Remark

TRACKING = "kube-apiserver-legacy-service-account-token-tracking"
"""Since when the API server labels the Secrets whose tokens are used, in kube-system."""
SINCE = "since"


class TrackingUnknown(Exception):
    """The ConfigMap does not say since when usage is tracked."""


class InvalidDate(Exception):
    """The label with the day of the last use has another value."""


class Limits(msgspec.Struct, frozen=True):
    """A token that was created or used at ``moment`` or later is kept."""

    moment: datetime

    @property
    def day(self) -> str:
        return format_day(self.moment)


def limits(tracking: ConfigMap, now: datetime, period_s: float) -> Limits | None:
    """The limits; None if usage has been tracked for less than a whole period. Raises TrackingUnknown."""
    since = (tracking.data or {}).get(SINCE)
    if since is None or not is_date(since):
        shown = "nothing" if since is None else repr(since)
        raise TrackingUnknown(f"ConfigMap {tracking.key}: data.{SINCE} says {shown} where a day (2026-01-02) should be")
    period = timedelta(seconds=period_s)
    tracked = now - datetime.fromisoformat(since).replace(tzinfo=UTC)
    return None if tracked - timedelta(days=1) < period else Limits(now - period)


def is_unused(secret: Secret, limit: Limits) -> bool:
    """Whether a token was created, and last used, before the limit. Raises InvalidDate."""
    created = secret.metadata.creation_timestamp
    if secret.type != ACCOUNT_TOKEN or secret.deleting or created is None or parse_time(created) >= limit.moment:
        return False
    used = secret.labels.get(LAST_USED)
    if used is None:
        return True
    if not is_date(used):
        raise InvalidDate(f"label {LAST_USED} says {used!r} where a day (2026-01-02) should be")
    return used < limit.day


def account_of(secret: Secret) -> str:
    """The key of a token's ServiceAccount; empty if the annotation is absent."""
    name = secret.annotations.get(ACCOUNT_NAME, "")
    return f"{secret.namespace}/{name}" if name else ""


def was_generated(secret: Secret, account: ServiceAccount | None) -> bool:
    """Whether the account lists the Secret. Secrets that users created are not listed."""
    if account is None or secret.annotations.get(ACCOUNT_UID, "") not in ("", account.uid):
        return False
    return any(ref.name == secret.name for ref in account.secrets)


def plan(secret: Secret, limit: Limits, now: datetime) -> Patch | Delete | None:
    """The patch or deletion of an unused token that no pod uses; None if it was marked less than a period ago."""
    invalid_since = secret.labels.get(INVALID_SINCE, "")
    if not is_date(invalid_since):
        return mark(secret, now)
    return None if invalid_since >= limit.day else removal(secret)


def mark(secret: Secret, now: datetime) -> Patch:
    """A patch with the day since which the token is invalid, of this version of the Secret: a use in the meantime has
    changed its labels."""
    day = format_day(now)
    version = secret.metadata.resource_version
    meta = {"uid": secret.uid, "resourceVersion": version, "labels": {INVALID_SINCE: day}}
    fields = {"invalidSince": day, "secret": kobj(secret)}
    return Patch(
        SECRETS,
        secret.namespace,
        secret.name,
        {"metadata": meta},
        content_type="application/merge-patch+json",
        reason="unused token is marked as invalid",
        remark=Remark("Mark the auto-generated service account token as invalid", fields, 0),
    )


def removal(secret: Secret) -> Delete:
    """A deletion of this version of the Secret: a use in the meantime has changed its labels."""
    version, reason = secret.metadata.resource_version, "token has been invalid and unused"
    fields = {
        "secret": kobj(secret),
        "creationTime": secret.metadata.creation_timestamp,
        "lastUsed": secret.labels.get(LAST_USED, ""),
        "invalidSince": secret.labels.get(INVALID_SINCE, ""),
    }
    remark = Remark("Delete auto-generated service account token", fields, 0)
    return Delete(SECRETS, secret.namespace, secret.name, resource_version=version, reason=reason, remark=remark)


def format_day(moment: datetime) -> str:
    return moment.date().isoformat()
