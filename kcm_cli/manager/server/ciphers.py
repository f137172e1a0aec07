"""Maps Go's names of TLS versions, cipher suites and groups to OpenSSL's."""

from collections.abc import Iterable, Mapping

from cryptography.hazmat.primitives.asymmetric import ec
from OpenSSL import SSL

_VERSIONS = {
    "VersionTLS10": SSL.TLS1_VERSION,
    "VersionTLS11": SSL.TLS1_1_VERSION,
    "VersionTLS12": SSL.TLS1_2_VERSION,
    "VersionTLS13": SSL.TLS1_3_VERSION,
}
_CURVES: Mapping[int, ec.EllipticCurve] = {23: ec.SECP256R1(), 24: ec.SECP384R1(), 25: ec.SECP521R1()}
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


def tls_version(name: str) -> int:
    """The lowest accepted version; TLS 1.2 by default, as in Go."""
    return _VERSIONS.get(name, SSL.TLS1_2_VERSION)


def openssl_ciphers(names: Iterable[str]) -> list[str]:
    """The suites for TLS 1.2 and below. Those of TLS 1.3 cannot be chosen, as in Go."""
    found: list[str] = []
    for name in names:
        exchange, with_, cipher = name.removeprefix("TLS_").partition("_WITH_")
        if with_ and exchange in _EXCHANGES and cipher in _CIPHERS:
            found.append(_EXCHANGES[exchange] + _CIPHERS[cipher])
    return list(dict.fromkeys(found))


def curve(numbers: Iterable[int]) -> ec.EllipticCurve | None:
    """The only group, if a single one is given that pyOpenSSL can set; else None."""
    chosen = list(numbers)
    return _CURVES.get(chosen[0]) if len(chosen) == 1 else None
