"""The cluster's root CA, which several controllers publish.

upstream: cmd/kube-controller-manager/app/certificates.go#getKubeAPIServerCAFileContents
"""

from pathlib import Path

from kcm_cli.component import key_pairs
from kcm_cli.component.environment import ServerCA
from kcm_cli.component.service_account_config import ServiceAccountTokenConfig
from kcm_cli.engine.context import Common
from kcm_cli.engine.descriptor import StartError


def root_ca_of(common: Common) -> bytes:
    """The PEM bundle of --root-ca-file, else the kubeconfig's certificate-authority-data. Raises StartError."""
    path = common.config(ServiceAccountTokenConfig).root_ca_file
    return read_root_ca(path) if path else common.config(ServerCA).pem


def read_root_ca(path: str) -> bytes:
    """The PEM bundle in a file. Raises StartError for one without a certificate."""
    try:
        pem = Path(path).read_bytes()
    except OSError as error:
        raise StartError(f"--root-ca-file {path} cannot be read: {error.strerror}") from error
    try:
        key_pairs.certificates(pem)
    except ValueError as error:
        raise StartError(f"--root-ca-file {path} holds no certificate in PEM, or a broken one") from error
    return pem
