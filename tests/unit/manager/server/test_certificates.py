"""Whom a client's certificate names."""

from datetime import UTC, datetime, timedelta

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from kcm_cli.manager.server.certificates import user_of
from kcm_cli.manager.server.user import AuthenticationError, User

UID = x509.ObjectIdentifier("1.3.6.1.4.1.57683.2")
KEY = ec.generate_private_key(ec.SECP256R1())


def named(*attributes: tuple[x509.ObjectIdentifier, str], with_uid: bool = True) -> User | None:
    """The user of a certificate with these attributes of its subject."""
    names = [x509.NameAttribute(oid, value) for oid, value in attributes]
    name, now = x509.Name(names), datetime(2026, 1, 1, tzinfo=UTC)
    builder = x509.CertificateBuilder(name, name, KEY.public_key(), 1, now, now + timedelta(days=1))
    certificate = builder.sign(KEY, hashes.SHA256())
    return user_of(certificate, certificate.public_bytes(serialization.Encoding.DER), with_uid=with_uid)


JANE = (NameOID.COMMON_NAME, "jane")


def test_name_groups_and_uid() -> None:
    user = named(JANE, (NameOID.ORGANIZATION_NAME, "a"), (NameOID.ORGANIZATION_NAME, "b"), (UID, "7"))
    assert user is not None
    assert (user.name, user.groups, user.uid) == ("jane", ("a", "b"), "7")


def test_without_a_common_name_it_names_nobody() -> None:
    assert named((NameOID.ORGANIZATION_NAME, "a"), (UID, "7")) is None


def test_the_uid_is_left_alone_where_the_gate_says_so() -> None:
    user = named(JANE, (UID, "7"), (UID, "8"), with_uid=False)
    assert user is not None
    assert user.uid == ""


def test_several_uids_are_no_identity() -> None:
    with pytest.raises(AuthenticationError, match=r"expected 1 UID, but found multiple: \[7 8\]"):
        named(JANE, (UID, "7"), (UID, "8"))
