"""The server's own certificates: their names, file modes and lifetimes."""

import ssl
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from kcm_cli.component.certificates import issue, name_of
from kcm_cli.sandbox.apiserver.security.certificates import Certificates

NOW = datetime(2030, 1, 1, tzinfo=UTC)


def parsed(pem: bytes) -> x509.Certificate:
    return x509.load_pem_x509_certificate(pem)


def alternative_names(certificate: x509.Certificate) -> list[str]:
    found = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    return [
        str(each) for each in (*found.get_values_for_type(x509.DNSName), *found.get_values_for_type(x509.IPAddress))
    ]


def test_the_server_certificate_has_the_usual_names() -> None:
    names = alternative_names(parsed(Certificates.load(None, NOW).serving.certificate))
    assert {"localhost", "kubernetes", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local"} <= set(names)
    assert {"127.0.0.1", "::1"} <= set(names)


def test_a_ca_of_another_kind_in_the_folder_is_named(tmp_path: Path) -> None:
    key, name = rsa.generate_private_key(65537, 2048), name_of("mine")
    own = issue(name, key, name, key, NOW, NOW + timedelta(days=9999))  # type: ignore[arg-type]
    (tmp_path / "ca.crt").write_bytes(own.public_bytes(Encoding.PEM))
    (tmp_path / "ca.key").write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    with pytest.raises(ValueError, match="the key of the CA is not an EC key"):
        Certificates.load(tmp_path, NOW)


def test_the_administrator_is_a_master() -> None:
    certificate = parsed(Certificates.load(None, NOW).admin.certificate)
    groups = certificate.subject.get_attributes_for_oid(NameOID.ORGANIZATION_NAME)
    assert [group.value for group in groups] == ["system:masters"]
    usages = certificate.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
    assert list(usages) == [ExtendedKeyUsageOID.CLIENT_AUTH]


def test_clients_trust_the_server_by_the_ca(tmp_path: Path) -> None:
    made = Certificates.load(None, datetime.now(UTC))
    (tmp_path / "crt").write_bytes(made.serving.certificate)
    (tmp_path / "key").write_bytes(made.serving.key)
    server = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    server.load_cert_chain(tmp_path / "crt", tmp_path / "key")
    client = ssl.create_default_context(cadata=made.ca.certificate.decode())
    ends = ssl.MemoryBIO(), ssl.MemoryBIO()
    asking = client.wrap_bio(ends[0], ends[1], server_hostname="localhost")
    answering = server.wrap_bio(ends[1], ends[0], server_side=True)
    for side in (asking, answering, asking, answering):
        try:
            side.do_handshake()
        except ssl.SSLWantReadError:
            continue
    assert asking.version() == "TLSv1.3"


def test_certificates_survive_a_restart_and_only_the_owner_reads_keys(tmp_path: Path) -> None:
    first = Certificates.load(tmp_path, NOW)
    again = Certificates.load(tmp_path, NOW + timedelta(days=1))
    assert (first.ca, first.serving, first.admin, first.service_account_key) == (
        again.ca,
        again.serving,
        again.admin,
        again.service_account_key,
    )
    keys = [path for path in tmp_path.iterdir() if b"PRIVATE KEY" in path.read_bytes()]
    assert len(keys) >= 4
    assert {path.stat().st_mode & 0o777 for path in keys} == {0o600}


@pytest.mark.parametrize("days", [400, 4000], ids=["serving", "ca"])
def test_expired_certificates_are_replaced(tmp_path: Path, days: int) -> None:
    Certificates.load(tmp_path, NOW)
    later = NOW + timedelta(days=days)
    certificate = parsed(Certificates.load(tmp_path, later).serving.certificate)
    assert certificate.not_valid_after_utc > later


def test_another_address_needs_another_certificate(tmp_path: Path) -> None:
    first = Certificates.load(tmp_path, NOW)
    second = Certificates.load(tmp_path, NOW, ("example.test", "10.1.2.3"))
    assert second.ca == first.ca
    assert {"example.test", "10.1.2.3"} <= set(alternative_names(parsed(second.serving.certificate)))
