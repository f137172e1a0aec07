"""Expiry of PodCertificateRequests."""

from datetime import UTC, datetime, timedelta

import msgspec
import pytest

from kcm_cli.api.certificates import PodCertificateRequest
from kcm_cli.controllers.podcertificaterequest_cleaner.controller import is_over

NOW = datetime(2026, 1, 1, 0, 15, tzinfo=UTC)


@pytest.mark.parametrize(
    ("created", "expected"),
    [("2026-01-01T00:00:00Z", True), ("2026-01-01T00:00:01Z", False), (None, False)],
)
def test_expiry_after_15_minutes(created: str | None, expected: bool) -> None:
    request = msgspec.convert({"metadata": {"creationTimestamp": created}}, PodCertificateRequest)
    assert is_over(request, NOW) is expected
    assert not is_over(request, NOW - timedelta(minutes=1))
