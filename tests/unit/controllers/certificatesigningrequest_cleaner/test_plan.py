"""Retention of CertificateSigningRequests."""

import base64
from datetime import UTC, datetime, timedelta

import msgspec
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from kcm_cli.api.core import Condition
from kcm_cli.controllers.certificatesigningrequest_cleaner import plan
from kcm_cli.machinery.times import format_time
from tests.unit.planning.certificates import name, stored

NOW = datetime(2026, 1, 2, tzinfo=UTC)


def certificate(ends):
    key, subject = ec.generate_private_key(ec.SECP256R1()), name("x")
    builder = x509.CertificateBuilder().subject_name(subject).issuer_name(subject).public_key(key.public_key())
    builder = builder.serial_number(1).not_valid_before(NOW - timedelta(days=9)).not_valid_after(ends)
    pem = builder.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)
    return base64.b64encode(pem).decode()


def patched(old, new):
    """A certificate with other bytes, which no issuer would sign but a client may write."""
    der = x509.load_pem_x509_certificate(base64.b64decode(certificate(datetime(2060, 1, 1, tzinfo=UTC)))).public_bytes(
        serialization.Encoding.DER
    )
    assert der.count(old) == 1
    body = base64.encodebytes(der.replace(old, new)).decode()
    return base64.b64encode(f"-----BEGIN CERTIFICATE-----\n{body}-----END CERTIFICATE-----\n".encode()).decode()


def request(kind, minutes, signed="", created_minutes=0):
    known = stored(certificate=signed)
    created = format_time(NOW - timedelta(minutes=created_minutes))
    failures = (
        () if kind is None else (Condition(type=kind, last_update_time=format_time(NOW - timedelta(minutes=minutes))),)
    )
    metadata = msgspec.structs.replace(known.metadata, creation_timestamp=created)
    status = msgspec.structs.replace(known.status, conditions=failures)
    return msgspec.structs.replace(known, metadata=metadata, status=status)


LASTING, ENDED = certificate(NOW + timedelta(days=1)), certificate(NOW - timedelta(seconds=1))


@pytest.mark.parametrize(
    ("known", "expected"),
    [
        pytest.param(request(None, 0, created_minutes=1440), False, id="pending for a day"),
        pytest.param(request(None, 0, created_minutes=1441), True, id="pending for longer"),
        pytest.param(request("Denied", 60), False, id="denied an hour ago"),
        pytest.param(request("Denied", 61), True, id="denied before"),
        pytest.param(request("Failed", 61), True, id="given up before"),
        pytest.param(request("Approved", 61), False, id="not signed for an hour"),
        pytest.param(request("Approved", 1441), True, id="not signed for a day"),
        pytest.param(request("Approved", 60, LASTING), False, id="signed an hour ago"),
        pytest.param(request("Approved", 61, LASTING), True, id="signed before"),
        pytest.param(request("Approved", 1, ENDED), True, id="valid no more"),
        pytest.param(request("Approved", 1, "eA=="), False, id="no certificate"),
        pytest.param(request("Else", 9999, created_minutes=9999), False, id="another condition"),
    ],
)
def test_expiry_of_requests(known, expected):
    assert plan.plan(known, NOW) is expected


@pytest.mark.parametrize(
    ("old", "new"),
    [
        pytest.param(b"\xa0\x03\x02\x01\x02", b"\xa0\x03\x02\x01\x09", id="of an unknown version"),
        pytest.param(b"20600101000000Z", b"00000101000000Z", id="valid until the year 0"),
        pytest.param(b"20600101000000Z", b"20601301000000Z", id="valid until a month 13"),
    ],
)
def test_a_request_with_an_odd_certificate_is_deleted_in_the_end(old, new):
    assert not plan.plan(request("Approved", 1, patched(old, new)), NOW)
    assert plan.plan(request("Approved", 61, patched(old, new)), NOW)


def test_a_request_whose_condition_has_no_time_is_kept():
    known = stored(Denied="True")
    assert not plan.plan(known, NOW)
