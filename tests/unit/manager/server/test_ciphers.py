import ssl

import pytest

from kcm_cli.component.serving_config import INSECURE_CIPHERS, PREFERRED_CIPHERS
from kcm_cli.manager.server.ciphers import groups, openssl_ciphers, tls_version


def test_every_suite_of_go_before_tls_1_3_has_a_name_in_openssl() -> None:
    before = [name for name in PREFERRED_CIPHERS + INSECURE_CIPHERS if "_WITH_" in name]
    assert len(before) > 20
    for name in before:
        assert len(openssl_ciphers([name])) == 1, name


@pytest.mark.parametrize("name", [name for name in PREFERRED_CIPHERS if "_WITH_" in name])
def test_preferred_suites_can_be_used(name: str) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.set_ciphers(":".join(openssl_ciphers([name])))


def test_versions_and_groups() -> None:
    assert tls_version("") == ssl.TLSVersion.TLSv1_2
    assert tls_version("VersionTLS13") == ssl.TLSVersion.TLSv1_3
    assert groups((29, 23, 99)) == ["X25519", "prime256v1"]
