"""The certificate that the client of a connection has shown."""

from dataclasses import dataclass, field

from cryptography import x509

from kcm_cli.manager.server.certificates import readable


@dataclass(frozen=True, slots=True)
class Peer:
    """The client certificate of a connection. ``chain``: the certificates that the client sent with it.

    verdicts: for each bundle (by its PEM), why it does not trust the certificate, and until when (monotonic seconds)
    that holds. Verifying a chain takes up to a millisecond of the loop that renews the lease, so it is not done for
    each request.
    """

    certificate: x509.Certificate
    chain: tuple[x509.Certificate, ...] = ()
    verdicts: dict[bytes, tuple[str, float]] = field(default_factory=dict, compare=False)


def parse_peer(der: bytes, chain: tuple[bytes, ...] = ()) -> Peer:
    """Parse a client's certificate. Raises ValueError if it, its names or its extensions are invalid."""
    return Peer(_parsed(der), tuple(_parsed(one) for one in chain))


def _parsed(der: bytes) -> x509.Certificate:
    certificate = x509.load_der_x509_certificate(der)
    readable(certificate)
    return certificate
