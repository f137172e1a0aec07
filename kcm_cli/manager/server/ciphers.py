"""What Go calls TLS versions, cipher suites and groups, in OpenSSL's words."""

import ssl
from collections.abc import Iterable

_VERSIONS = {
    "VersionTLS10": ssl.TLSVersion.TLSv1,
    "VersionTLS11": ssl.TLSVersion.TLSv1_1,
    "VersionTLS12": ssl.TLSVersion.TLSv1_2,
    "VersionTLS13": ssl.TLSVersion.TLSv1_3,
}
_GROUPS = {23: "prime256v1", 24: "secp384r1", 25: "secp521r1", 29: "X25519"}
_EXCHANGES = {"ECDHE_ECDSA": "ECDHE-ECDSA-", "ECDHE_RSA": "ECDHE-RSA-", "RSA": ""}
_CIPHERS = {
    "AES_128_CBC_SHA": "AES128-SHA",
    "AES_256_CBC_SHA": "AES256-SHA",
    "AES_128_CBC_SHA256": "AES128-SHA256",
    "AES_128_GCM_SHA256": "AES128-GCM-SHA256",
    "AES_256_GCM_SHA384": "AES256-GCM-SHA384",
    "CHACHA20_POLY1305": "CHACHA20-POLY1305",
    "CHACHA20_POLY1305_SHA256": "CHACHA20-POLY1305",
    "3DES_EDE_CBC_SHA": "DES-CBC3-SHA",
    "RC4_128_SHA": "RC4-SHA",
}


def tls_version(name: str) -> ssl.TLSVersion:
    """The lowest version to accept; TLS 1.2 where none is named, as in Go."""
    return _VERSIONS.get(name, ssl.TLSVersion.TLSv1_2)


def openssl_ciphers(names: Iterable[str]) -> list[str]:
    """The suites for TLS 1.2 and below. Those of TLS 1.3 are left out: they cannot be chosen, in Go neither."""
    found: list[str] = []
    for name in names:
        exchange, with_, cipher = name.removeprefix("TLS_").partition("_WITH_")
        if with_ and exchange in _EXCHANGES and cipher in _CIPHERS:
            found.append(_EXCHANGES[exchange] + _CIPHERS[cipher])
    return list(dict.fromkeys(found))


def groups(numbers: Iterable[int]) -> list[str]:
    """The groups that OpenSSL knows of those given by number."""
    return [_GROUPS[number] for number in numbers if number in _GROUPS]
