"""Signed certificates: fields, validity, errors."""

from datetime import timedelta
from ipaddress import ip_address

import pytest
from cryptography import x509
from cryptography.x509.oid import ExtendedKeyUsageOID, ExtensionOID, NameOID

from kcm_cli.component.clock import RealClock
from kcm_cli.controllers.certificatesigningrequest_signing.authority import Authority
from kcm_cli.machinery.errors import FormatError
from kcm_cli.runtime.loads import Loads
from tests.unit.controllers.certificatesigningrequest_signing.conftest import KEYS, NOW, write_ca
from tests.unit.planning.certificates import name, read, request

DAY = timedelta(days=1)
USAGES = ("client auth", "digital signature", "key encipherment")
LOADS = Loads(RealClock())


def sign(files, asked=None, usages=USAGES, lifetime=DAY, now=NOW):
    pem = Authority(*files, LOADS).sign(read(request() if asked is None else asked), usages, lifetime, now)
    return x509.load_pem_x509_certificate(pem)


@pytest.mark.parametrize("kind", KEYS)
def test_a_certificate_is_signed_by_its_ca_with_any_kind_of_key(tmp_path, kind):
    files = write_ca(tmp_path, kind)
    issuer = x509.load_pem_x509_certificate((tmp_path / "ca.crt").read_bytes())
    sign(files).verify_directly_issued_by(issuer)


def test_a_certificate_has_the_requested_subject_and_usages(ca):
    subject = name("ann", "b", "a")
    names = [x509.IPAddress(ip_address("10.0.0.1")), x509.DNSName("x")]
    asked = request(subject, *names)
    certificate = sign(ca, asked)
    assert sorted(certificate.subject, key=str) == sorted(subject, key=str)
    assert certificate.public_key() == asked.public_key()
    found = {extension.oid: (extension.critical, extension.value) for extension in certificate.extensions}
    assert found.keys() == {
        ExtensionOID.BASIC_CONSTRAINTS,
        ExtensionOID.KEY_USAGE,
        ExtensionOID.EXTENDED_KEY_USAGE,
        ExtensionOID.SUBJECT_ALTERNATIVE_NAME,
        ExtensionOID.AUTHORITY_KEY_IDENTIFIER,
    }
    assert found[ExtensionOID.BASIC_CONSTRAINTS] == (True, x509.BasicConstraints(False, None))
    usage = found[ExtensionOID.KEY_USAGE][1]
    assert (usage.digital_signature, usage.key_encipherment, usage.key_cert_sign) == (True, True, False)
    assert list(found[ExtensionOID.EXTENDED_KEY_USAGE][1]) == [ExtendedKeyUsageOID.CLIENT_AUTH]
    assert found[ExtensionOID.SUBJECT_ALTERNATIVE_NAME] == (False, x509.SubjectAlternativeName(names[::-1]))


@pytest.mark.parametrize("kind", [ExtensionOID.KEY_USAGE, ExtensionOID.EXTENDED_KEY_USAGE], ids=["plain", "extended"])
def test_extensions_without_usages_are_left_out(ca, kind):
    usages = ["server auth"] if kind == ExtensionOID.KEY_USAGE else ["cert sign", "crl sign"]
    assert kind not in {extension.oid for extension in sign(ca, usages=usages).extensions}


def test_the_parts_of_a_subject_are_in_gos_order(ca):
    asked = {"SERIAL_NUMBER": "7", "COMMON_NAME": "u", "ORGANIZATIONAL_UNIT_NAME": "ou", "ORGANIZATION_NAME": "o"}
    asked |= {"POSTAL_CODE": "pc", "STREET_ADDRESS": "st", "LOCALITY_NAME": "l", "STATE_OR_PROVINCE_NAME": "s"}
    parts = [x509.NameAttribute(getattr(NameOID, kind), value) for kind, value in asked.items()]
    certificate = sign(ca, request(x509.Name(parts)))
    assert [part.value for part in certificate.subject] == ["s", "l", "st", "pc", "o", "ou", "u", "7"]


def test_names_are_critical_without_a_subject(ca):
    certificate = sign(ca, request(x509.Name([]), x509.DNSName("x")))
    assert certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).critical


def test_a_ca_without_a_key_id_sets_no_authority_key_id(tmp_path):
    certificate = sign(write_ca(tmp_path, key_id=False))
    assert ExtensionOID.AUTHORITY_KEY_IDENTIFIER not in {extension.oid for extension in certificate.extensions}


@pytest.mark.parametrize(
    ("lifetime", "days", "expected"),
    [
        pytest.param(timedelta(hours=1), 1000, timedelta(hours=1), id="short"),
        pytest.param(timedelta(hours=8), 1000, timedelta(hours=8, minutes=-5), id="long"),
        pytest.param(timedelta(days=30), 2, timedelta(days=2), id="as long as the CA"),
    ],
)
def test_validity_of_certificates(tmp_path, lifetime, days, expected):
    certificate = sign(write_ca(tmp_path, days=days), lifetime=lifetime, now=NOW + timedelta(microseconds=7))
    assert certificate.not_valid_before_utc == NOW - timedelta(minutes=5)
    assert certificate.not_valid_after_utc == NOW + expected


def test_requests_that_cannot_be_signed(ca, tmp_path):
    with pytest.raises(FormatError, match="unrecognized usage values: fun"):
        sign(ca, usages=["fun", "any"])
    with pytest.raises(FormatError, match="expired"):
        sign(write_ca(tmp_path, days=-1))


def test_changed_files_are_reloaded_and_invalid_ones_are_not_used(ca, tmp_path):
    authority = Authority(*ca, LOADS)

    def issuer_key():
        pem = authority.sign(read(request()), USAGES, DAY, NOW)
        certificate = x509.load_pem_x509_certificate(pem)
        return certificate.extensions.get_extension_for_class(x509.AuthorityKeyIdentifier).value.key_identifier

    first = issuer_key()
    write_ca(tmp_path)
    second = issuer_key()
    (tmp_path / "ca.key").write_text("no key")
    assert first != second == issuer_key()


def test_nothing_is_signed_while_the_file_has_several_certificates(ca, tmp_path):
    authority, file = Authority(*ca, LOADS), tmp_path / "ca.crt"
    certificate = file.read_bytes()
    for content in (certificate * 2, b"not read, the last one stays"):
        file.write_bytes(content)
        with pytest.raises(FormatError, match="expected 1 certificate, found 2"):
            authority.sign(read(request()), USAGES, DAY, NOW)
    file.write_bytes(certificate)
    assert authority.sign(read(request()), USAGES, DAY, NOW)


@pytest.mark.parametrize(
    ("content", "text"),
    [
        pytest.param({"ca.crt": b"x"}, "not a PEM certificate", id="no certificate"),
        pytest.param({"ca.key": b"x"}, "unencrypted PEM key", id="no key"),
    ],
)
def test_files_without_a_ca(ca, tmp_path, content, text):
    for file, data in content.items():
        (tmp_path / file).write_bytes(data)
    with pytest.raises(FormatError, match=text):
        Authority(*ca, LOADS)


def test_certificate_and_key_that_do_not_match(ca, tmp_path):
    certificate = (tmp_path / "ca.crt").read_bytes()
    write_ca(tmp_path)
    own = (tmp_path / "ca.crt").read_bytes()
    (tmp_path / "ca.crt").write_bytes(certificate)
    with pytest.raises(FormatError, match="not the certificate's"):
        Authority(*ca, LOADS)
    (tmp_path / "ca.crt").write_bytes(own * 2)
    with pytest.raises(FormatError, match="expected 1 certificate, found 2"):
        Authority(*ca, LOADS)
