"""Certificate requests, read as Go reads them (``tests/generate/readings.py`` records its answers)."""

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from kcm_cli.controllers.certificatesigningrequest_signing import authority
from kcm_cli.machinery import distinguished_names
from kcm_cli.machinery.der import UnsupportedError
from kcm_cli.machinery.errors import FormatError
from kcm_cli.planning import pkcs10
from tests.kit.places import ROOT

TABLE = json.loads((ROOT / "tests" / "recorded" / "readings" / "requests.json").read_text())
NOW = datetime(2026, 11, 28, 12, tzinfo=UTC)
ISSUER = authority.Issuer(distinguished_names.written({"2.5.4.3": ["ca"]}), b"key", NOW + timedelta(days=9))
USAGES = ("digital signature", "decipher only", "server auth", "client auth")
NOT_READ = {
    "with a time in the subject",
    "with a tag above 30",
    *(f"with the URI {uri!r}" for uri in (b"", b"HTTP://A/%41?x#f", b"//x", b"a://", b"a://u@b/", b"http://[::1]/")),
    *(f"with the URI {uri!r}" for uri in (b"a:/b", b"x/y", b"a b", b"http://a/b c", b'http://a/"')),
}
"""Requests that Go reads. They are not signed."""


def reading(document: bytes) -> dict[str, object]:
    """What is read, in the form of the table."""
    read = pkcs10.from_der(document)
    to_sign = authority.certificate_for(read, ISSUER, USAGES, timedelta(days=1, minutes=-5) + authority.BACKDATE, NOW)
    lists = ("organizations", "dns_names", "emails", "ips", "uris")
    texts = {field: [_hex(one) for one in getattr(read, field)] for field in lists}
    certificate = to_sign(authority.ED25519_ALGORITHM, 255).hex()
    return {"common_name": _hex(read.common_name), **texts, "certificate": certificate}


def _hex(text: str | bytes) -> str:
    return (text.encode() if isinstance(text, str) else text).hex()


def differences(document: bytes, expected: dict[str, Any]) -> str:
    """Empty where a document is read as by Go; "not read" where it is read by Go only."""
    try:
        found = reading(document)
    except UnsupportedError:
        return "" if "error" in expected else "not read"
    except FormatError as error:
        return "" if "error" in expected else str(error)
    return "" if found == expected else f"{found} instead of {expected}"


@pytest.mark.parametrize(("what", "document", "expected"), [pytest.param(*row, id=row[0]) for row in TABLE])
def test_a_request_is_what_go_reads_and_so_is_its_certificate(what: str, document: str, expected: Any) -> None:
    assert differences(bytes.fromhex(document), expected) == ("not read" if what in NOT_READ else "")
