import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from OpenSSL import SSL

from kcm_cli.component.serving_config import INSECURE_CIPHERS, PREFERRED_CIPHERS
from kcm_cli.manager.server.ciphers import curve, openssl_ciphers, tls_version


def test_every_suite_of_go_before_tls_1_3_has_a_name_in_openssl() -> None:
    before = [name for name in PREFERRED_CIPHERS + INSECURE_CIPHERS if "_WITH_" in name]
    assert len(before) > 20
    for name in before:
        assert len(openssl_ciphers([name])) == 1, name


@pytest.mark.parametrize("name", [name for name in PREFERRED_CIPHERS if "_WITH_" in name])
def test_preferred_suites_can_be_used(name: str) -> None:
    context = SSL.Context(SSL.TLS_SERVER_METHOD)
    context.set_cipher_list(":".join(openssl_ciphers([name])).encode())


def test_versions_and_groups() -> None:
    assert tls_version("") == SSL.TLS1_2_VERSION
    assert tls_version("VersionTLS13") == SSL.TLS1_3_VERSION
    assert isinstance(curve((24,)), ec.SECP384R1)
    assert curve((29,)) is curve((23, 24)) is curve(()) is None
