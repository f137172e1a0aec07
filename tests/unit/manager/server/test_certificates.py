"""The users of client certificates."""

import base64
import json
import warnings
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from OpenSSL import crypto
from starlette.datastructures import Headers

from kcm_cli.component.client_certificates import Identity, identity_of
from kcm_cli.component.clock import LoopClock
from kcm_cli.component.metrics import Registry
from kcm_cli.manager.server.authentication import Authenticator, parse_peer
from kcm_cli.manager.server.metrics import AuthMetrics
from kcm_cli.manager.server.trust import Trust, TrustState
from kcm_cli.manager.server.user import AuthenticationError
from kcm_cli.rest.ca_bundles import CaBundle, parse_bundle
from tests.trust import cases
from tests.trust.cases import BETWEEN, CASES, CLIENT, LEAF, ROOT, Signed, sign
from tests.trust.record import ANSWERS

pytestmark = pytest.mark.real_time

UID = x509.ObjectIdentifier("1.3.6.1.4.1.57683.2")
KEY = ec.generate_private_key(ec.SECP256R1())


def named(*attributes: tuple[x509.ObjectIdentifier, str], with_uid: bool = True) -> Identity | None:
    """The user of a certificate with these attributes of its subject."""
    names = [x509.NameAttribute(oid, value) for oid, value in attributes]
    name, now = x509.Name(names), datetime(2026, 1, 1, tzinfo=UTC)
    builder = x509.CertificateBuilder(name, name, KEY.public_key(), 1, now, now + timedelta(days=1))
    return identity_of(builder.sign(KEY, hashes.SHA256()), with_uid=with_uid)


JANE = (NameOID.COMMON_NAME, "jane")


def test_name_groups_and_uid() -> None:
    user = named(JANE, (NameOID.ORGANIZATION_NAME, "a"), (NameOID.ORGANIZATION_NAME, "b"), (UID, "7"))
    assert user is not None
    assert (user.name, user.groups, user.uid) == ("jane", ("a", "b"), "7")


def test_a_certificate_without_a_common_name_has_no_user() -> None:
    assert named((NameOID.ORGANIZATION_NAME, "a"), (UID, "7")) is None


def test_the_uid_is_ignored_without_its_gate() -> None:
    user = named(JANE, (UID, "7"), (UID, "8"), with_uid=False)
    assert user is not None
    assert user.uid == ""


def test_several_uids_are_refused() -> None:
    with pytest.raises(ValueError, match=r"expected 1 UID, but found multiple: \[7 8\]"):
        named(JANE, (UID, "7"), (UID, "8"))


def test_of_several_common_names_the_last_counts_as_in_go() -> None:
    user = named(JANE, (NameOID.COMMON_NAME, "joe"))
    assert user is not None
    assert user.name == "joe"


def der(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.DER)


ENDS = datetime(2051, 1, 1, tzinfo=UTC)
UNREADABLE = {
    "a year that no date has": (b"20510101", b"00000101"),
    "a name that is no UTF-8": (b"\x0c\x08mallory1", b"\x0c\x08\xff\xfeallory"),
    "an extension twice": (b"\x55\x1d\x25", b"\x55\x1d\x13"),  # extKeyUsage becomes basicConstraints
}


@pytest.mark.parametrize(("old", "new"), UNREADABLE.values(), ids=UNREADABLE.keys())
def test_an_invalid_certificate_is_found_when_the_connection_opens(old: bytes, new: bytes) -> None:
    whole = der(sign(replace(LEAF, name="mallory1", usages=CLIENT, ends=ENDS)).certificate)
    odd = whole.replace(old, new)
    assert odd != whole
    with pytest.raises(ValueError, match=r"\w"):
        parse_peer(odd)
    with pytest.raises(ValueError, match=r"\w"):
        parse_peer(whole, (odd,))


@pytest.mark.parametrize(("weak", "trusted"), [("leaf", False), ("between", False), ("root", True)])
def test_sha_1_signatures_are_refused_except_on_roots(weak: str, trusted: bool) -> None:
    def again(signed: Signed, issuer: Signed, name: str) -> Signed:
        if name != weak:
            return signed
        certificate = crypto.X509.from_cryptography(signed.certificate)
        with warnings.catch_warnings(action="ignore", category=DeprecationWarning):  # the library wants none of this
            certificate.sign(crypto.PKey.from_cryptography_key(issuer.key), "sha1")
        return Signed(certificate.to_cryptography(), signed.key)

    new = sign(ROOT)
    root = again(new, new, "root")
    between = again(sign(BETWEEN, root), root, "between")
    leaf = again(sign(replace(LEAF, usages=CLIENT), between), between, "leaf")
    why = parse_bundle(root.pem).verify_error(leaf.certificate, (between.certificate,), datetime.now(UTC))
    assert (why == "") == trusted
    assert trusted or "insecure algorithm" in why


@pytest.mark.parametrize("change", UNREADABLE.values(), ids=UNREADABLE.keys())
def test_a_bundle_with_an_invalid_certificate_is_refused(change: tuple[bytes, bytes]) -> None:
    """Here the name is that of its issuer."""
    issuer = sign(replace(ROOT, name="mallory1"))
    whole = der(sign(replace(LEAF, usages=CLIENT, ends=ENDS), issuer).certificate)
    odd = whole.replace(*change)
    assert odd != whole
    pem = b"-----BEGIN CERTIFICATE-----\n" + base64.encodebytes(odd) + b"-----END CERTIFICATE-----\n"
    with pytest.raises(ValueError, match=r"\w"):
        parse_bundle(pem)


async def test_a_chain_is_built_once_for_many_requests_of_a_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    root = sign(ROOT)
    leaf = sign(replace(LEAF, name="jane", usages=CLIENT), root)
    built: list[str] = []
    verify_error = CaBundle.verify_error

    def counted(bundle: CaBundle, *given: object) -> str:
        built.append(verify_error(bundle, *given))  # type: ignore[arg-type]
        return built[-1]

    monkeypatch.setattr(CaBundle, "verify_error", counted)
    trust = Trust(TrustState(clients=parse_bundle(root.pem)))
    authenticator = Authenticator(trust, None, LoopClock(), AuthMetrics.register(Registry()))
    peer = parse_peer(der(leaf.certificate))
    for _ in range(5):
        assert (await authenticator.user(Headers(), peer)).name == "jane"
    assert built == [""]
    trust.replace(TrustState(clients=parse_bundle(sign(replace(ROOT, name="others")).pem)))
    with pytest.raises(AuthenticationError, match="x509: unable to get local issuer"):
        await authenticator.user(Headers(), peer)


@pytest.mark.parametrize("name", [name for name in CASES if "one name" in name or "key identifier" in name])
def test_a_client_is_trusted_as_go_trusts_a_server(name: str) -> None:
    """The chain is that of a server here, for clients."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(cases, "LEAF", replace(LEAF, usages=CLIENT))
        case = CASES[name]()
    leaf, *between = x509.load_pem_x509_certificates(case.chain)
    why = parse_bundle(case.bundle).verify_error(leaf, tuple(between), datetime.now(UTC))
    assert (why == "") == (json.loads(ANSWERS.read_text())[name] == "trusted")


def test_the_key_of_a_client_is_looked_for_among_a_hundred_of_its_issuers_name() -> None:
    """As in Go, which checks as many signatures: some clusters have published 550 CAs of one name."""
    root = sign(ROOT)
    leaf = sign(replace(LEAF, usages=CLIENT), root).certificate
    others = [sign(ROOT).pem for _ in range(100)]
    now = datetime.now(UTC)
    assert parse_bundle(b"".join((*others[:99], root.pem))).verify_error(leaf, (), now) == ""
    assert parse_bundle(b"".join((*others, root.pem))).verify_error(leaf, (), now) != ""


def test_an_unchanged_bundle_is_parsed_once() -> None:
    text = sign(ROOT).pem
    assert parse_bundle(text) is parse_bundle(bytes(bytearray(text)))


def test_names_that_python_does_not_read_are_compared_all_the_same() -> None:
    """OpenSSL reads them: whoever shows such a certificate is not trusted, which is no failure of the server's."""
    latin = b"\x0c\x07aurelie", b"\x14\x07aur\xe9lie"
    root = sign(replace(ROOT, name="aurelie"))
    leaf = sign(replace(LEAF, usages=CLIENT), root)
    odd_leaf, odd_root = (x509.load_der_x509_certificate(der(one.certificate).replace(*latin)) for one in (leaf, root))
    stranger = sign(replace(LEAF, usages=CLIENT), sign(replace(ROOT, name="stranger")))
    now = datetime.now(UTC)
    with pytest.raises(ValueError, match="issuer"):
        _ = odd_leaf.issuer
    bundle = parse_bundle(odd_root.public_bytes(serialization.Encoding.PEM))
    for one, trusted in ((bundle, stranger.certificate), (bundle, odd_leaf), (parse_bundle(root.pem), odd_leaf)):
        assert one.verify_error(trusted, (), now)
        assert one.verify_error(stranger.certificate, (trusted,), now)
