"""The cluster's CA, which several controllers hand out."""

from pathlib import Path

from cryptography import x509

from kcm_cli.engine.descriptor import StartError


def read_root_ca(path: str) -> bytes:
    """The PEM bundle of --root-ca-file, or nothing without a file. Raises StartError for one without a certificate."""
    if not path:
        return b""
    try:
        pem = Path(path).read_bytes()
    except OSError as error:
        raise StartError(f"--root-ca-file {path} cannot be read: {error.strerror}") from error
    try:
        x509.load_pem_x509_certificates(pem)
    except ValueError as error:
        raise StartError(f"--root-ca-file {path} holds no certificate in PEM, or a broken one") from error
    return pem
