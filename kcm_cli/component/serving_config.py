"""Options of the HTTPS server."""

from collections.abc import Iterator
from typing import ClassVar

from kcm_cli.component.flag_values import CertKey
from kcm_cli.component.options import OptionGroup, option
from kcm_cli.component.value_types import BOOL, INT, INT32_SLICE, IP, NAMED_CERT_KEY, STRING, STRINGS

TLS_VERSIONS = ("VersionTLS10", "VersionTLS11", "VersionTLS12", "VersionTLS13")

PREFERRED_CIPHERS = (
    "TLS_AES_128_GCM_SHA256",
    "TLS_AES_256_GCM_SHA384",
    "TLS_CHACHA20_POLY1305_SHA256",
    "TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA",
    "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256",
    "TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA",
    "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384",
    "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305",
    "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256",
    "TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA",
    "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256",
    "TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA",
    "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384",
    "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305",
    "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256",
)
INSECURE_CIPHERS = (
    "TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA256",
    "TLS_ECDHE_ECDSA_WITH_RC4_128_SHA",
    "TLS_ECDHE_RSA_WITH_3DES_EDE_CBC_SHA",
    "TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA256",
    "TLS_ECDHE_RSA_WITH_RC4_128_SHA",
    "TLS_RSA_WITH_3DES_EDE_CBC_SHA",
    "TLS_RSA_WITH_AES_128_CBC_SHA",
    "TLS_RSA_WITH_AES_128_CBC_SHA256",
    "TLS_RSA_WITH_AES_128_GCM_SHA256",
    "TLS_RSA_WITH_AES_256_CBC_SHA",
    "TLS_RSA_WITH_AES_256_GCM_SHA384",
    "TLS_RSA_WITH_RC4_128_SHA",
)
CURVES = (23, 24, 25, 29, 4587, 4588, 4589)
"""The key exchange groups of Go 1.26, by their TLS numbers."""


class ServingConfig(OptionGroup):
    """Options of the secure port."""

    SECTION: ClassVar[str] = "Secure serving"

    bind_address: str = option(
        IP,
        "0.0.0.0",
        flag="bind-address",
        help=("Address that the secure port listens on. 0.0.0.0 or :: listens on all addresses of both families."),
    )
    port: int = option(
        INT, 10257, flag="secure-port", help="Port for HTTPS with authentication and authorization. 0: no HTTPS."
    )
    cert_dir: str = option(
        STRING,
        "",
        flag="cert-dir",
        help=(
            "Directory of the self-signed certificate, which is created if it does not exist. If "
            "empty, the certificate is kept in memory. Ignored with --tls-cert-file and "
            "--tls-private-key-file."
        ),
    )
    cert_file: str = option(
        STRING,
        "",
        flag="tls-cert-file",
        help="PEM certificate for HTTPS, followed by its intermediates. Reloaded when it changes.",
    )
    key_file: str = option(STRING, "", flag="tls-private-key-file", help="PEM private key for --tls-cert-file.")
    sni_cert_keys: tuple[CertKey, ...] = option(
        NAMED_CERT_KEY,
        (),
        flag="tls-sni-cert-key",
        help=(
            "Another certificate with its key, as cert.pem,key.pem or "
            "cert.pem,key.pem:name,*.domain. Without names, those in the certificate apply; exact "
            "names take precedence over wildcards. A name may be an address of this host, for clients "
            "that send no server name. May be repeated."
        ),
    )
    min_version: str = option(
        STRING,
        "",
        flag="tls-min-version",
        choices=TLS_VERSIONS,
        help="Lowest accepted TLS version: VersionTLS10, VersionTLS11, VersionTLS12, VersionTLS13.",
    )
    cipher_suites: tuple[str, ...] = option(
        STRINGS,
        (),
        flag="tls-cipher-suites",
        choices=PREFERRED_CIPHERS + INSECURE_CIPHERS,
        help=(
            "Accepted cipher suites, separated by commas. If empty, the defaults of the TLS library "
            f"apply. Preferred: {', '.join(PREFERRED_CIPHERS)}. Insecure: "
            f"{', '.join(INSECURE_CIPHERS)}."
        ),
    )
    curve_preferences: tuple[int, ...] = option(
        INT32_SLICE,
        (),
        flag="tls-curve-preferences",
        help=("Accepted key exchange groups, by their TLS numbers: 23 P-256, 24 P-384, 25 P-521, 29 X25519."),
    )
    disable_http2: bool = option(
        BOOL, False, flag="disable-http2-serving", help="Do not serve HTTP/2. kcm serves HTTP/1.1 only."
    )
    http2_max_streams: int = option(
        INT,
        0,
        flag="http2-max-streams-per-connection",
        help="Streams per HTTP/2 connection. No effect: kcm serves HTTP/1.1.",
    )
    permit_address_sharing: bool = option(
        BOOL,
        False,
        flag="permit-address-sharing",
        help=(
            "Listen with SO_REUSEADDR, so that a restart need not wait for connections in TIME_WAIT. "
            "kcm always does, as Go programs do."
        ),
    )
    permit_port_sharing: bool = option(
        BOOL,
        False,
        flag="permit-port-sharing",
        help="Listen with SO_REUSEPORT, so that several processes can share the port.",
    )

    def problems(self) -> Iterator[str]:
        if not 0 <= self.port <= 65535:
            yield f"secure-port {self.port} must be between 0 and 65535, inclusive. 0 for turning off secure port"
        if bool(self.cert_file) != bool(self.key_file):
            given, missing = ("tls-cert-file", "tls-private-key-file")
            if self.key_file:
                given, missing = missing, given
            yield f"{given} needs {missing}: a certificate and its key go together"
        if self.min_version and self.min_version not in TLS_VERSIONS:
            yield f'tls-min-version: unknown tls version "{self.min_version}"'
        for number in dict.fromkeys(self.curve_preferences):
            if number not in CURVES:
                yield f"tls-curve-preferences: unknown curve {number}"
            elif self.curve_preferences.count(number) > 1:
                yield f"tls-curve-preferences: curve {number} is given twice"
        for name in self.cipher_suites:
            if name not in PREFERRED_CIPHERS and name not in INSECURE_CIPHERS:
                yield f"tls-cipher-suites: Cipher suite {name} not supported or doesn't exist"
