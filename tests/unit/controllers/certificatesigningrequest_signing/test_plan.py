"""The requests that are due, those that cannot be read, and the duration of certificates."""

from datetime import UTC, datetime

import pytest
from cryptography import x509

from kcm_cli.controllers.certificatesigningrequest_signing import plan
from kcm_cli.machinery.errors import FormatError
from tests.unit.planning.certificates import in_base64, name, request, stored


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


@pytest.mark.parametrize(
    ("names", "why"),
    [
        pytest.param([x509.UniformResourceIdentifier("//x")], "the form of a URI is not supported", id="a URI"),
        pytest.param([x509.DNSName("x" * 99)] * 700, "more than 65536 bytes are not supported", id="large"),
    ],
)
def test_a_request_that_only_go_can_read_is_not_tried_for_ever(names, why):
    asked = in_base64(request(name(), *names))
    update = plan.plan(stored(asked, Approved="True"), 3600.0, datetime(2030, 1, 1, tzinfo=UTC))
    (path,) = update.changes
    failed = update.changes[path][-1]
    assert (path, failed["type"], failed["reason"]) == (("status", "conditions"), "Failed", "SignerValidationFailure")
    assert why in failed["message"]


def test_an_invalid_request_is_tried_again():
    with pytest.raises(FormatError, match="unable to parse csr 'r'"):
        plan.plan(stored("eA==", Approved="True"), 3600.0, datetime(2030, 1, 1, tzinfo=UTC))
