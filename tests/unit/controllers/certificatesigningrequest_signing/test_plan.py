"""The requests that are due, and the duration of certificates."""

import pytest

from kcm_cli.controllers.certificatesigningrequest_signing import plan
from tests.unit.planning.certificates import stored


@pytest.mark.parametrize(
    ("request_", "expected"),
    [
        pytest.param(stored(), False, id="new"),
        pytest.param(stored(Approved="True"), True, id="approved"),
        pytest.param(stored(Approved="True", Denied="True"), False, id="denied, too"),
        pytest.param(stored(Approved="True", Failed="True"), False, id="given up"),
        pytest.param(stored(Approved="True", Failed=""), False, id="given up in an old way"),
        pytest.param(stored(Approved="True", Failed="False"), True, id="not given up"),
        pytest.param(stored(Approved="True", certificate="eA=="), False, id="signed"),
    ],
)
def test_requests_that_are_due(request_, expected):
    assert plan.is_due(request_) is expected


@pytest.mark.parametrize(
    ("asked_s", "expected"), [(None, 3600.0), (1800, 1800.0), (7200, 3600.0), (60, 600.0)], ids=str
)
def test_duration_of_certificates(asked_s, expected):
    assert plan.duration_s(asked_s, 3600.0) == expected
