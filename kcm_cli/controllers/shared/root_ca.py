"""The cluster's root CA, which several controllers publish. Its file is read again once a minute.

upstream: cmd/kube-controller-manager/app/certificates.go#getKubeAPIServerCAFileContents
"""

import logging
from pathlib import Path

from kcm_cli.component import key_pairs
from kcm_cli.component.environment import ServerCA
from kcm_cli.component.service_account_config import ServiceAccountTokenConfig
from kcm_cli.engine.context import Common
from kcm_cli.engine.descriptor import StartError

log = logging.getLogger(__name__)

RELOAD_S = 60.0
"""As often as upstream's other files are read again where nobody says that they have changed."""


class RootCA:
    """The PEM bundle as it was read last. Raises StartError."""

    def __init__(self, common: Common) -> None:
        self.pem = root_ca_of(common)
        self._path = common.config(ServiceAccountTokenConfig).root_ca_file

    def reload(self) -> bool:
        """Read the file again. Returns whether the bundle has changed; a file without a certificate is not used."""
        if not self._path:
            return False
        try:
            pem = read_root_ca(self._path)
        except StartError as error:
            log.error("Could not reload the root CA, keeping the last", extra={"fields": {"err": str(error)}})
            return False
        changed, self.pem = pem != self.pem, pem
        if changed:
            log.info("Reloaded the root CA", extra={"fields": {"file": self._path}})
        return changed


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
