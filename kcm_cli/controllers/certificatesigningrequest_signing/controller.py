"""certificatesigningrequest-signing-controller: signs the approved requests of Kubernetes' own signers.

upstream: pkg/controller/certificates/signer
"""

import logging
from collections.abc import Mapping

from kcm_cli.api.certificates import CERTIFICATE_SIGNING_REQUESTS
from kcm_cli.controllers.certificatesigningrequest_signing import plan
from kcm_cli.controllers.certificatesigningrequest_signing.authority import Authority
from kcm_cli.controllers.certificatesigningrequest_signing.config import CSRSigningConfig
from kcm_cli.engine import writes
from kcm_cli.engine.context import ControllerContext
from kcm_cli.engine.controller import Controller, Queue, Watch, own_key, starting
from kcm_cli.engine.descriptor import StartError
from kcm_cli.engine.worker import unhandled
from kcm_cli.machinery.errors import FormatError
from kcm_cli.planning import certificate_requests
from kcm_cli.runtime.loads import Loads
from kcm_cli.runtime.workqueue import RetryLimiter

log = logging.getLogger(__name__)

WORKERS = 5
RETRY_S = 0.2


def files_of(config: CSRSigningConfig) -> Mapping[str, tuple[str, str]]:
    """The CA files of each signer that has any: one pair for all signers if it is set, else each signer's own."""
    own = {
        certificate_requests.KUBELET_SERVING: (config.kubelet_serving_cert_file, config.kubelet_serving_key_file),
        certificate_requests.KUBELET_CLIENT: (config.kubelet_client_cert_file, config.kubelet_client_key_file),
        certificate_requests.CLIENT: (config.kube_apiserver_client_cert_file, config.kube_apiserver_client_key_file),
        certificate_requests.LEGACY_UNKNOWN: (config.legacy_unknown_cert_file, config.legacy_unknown_key_file),
    }
    if config.cert_file and config.key_file:
        return dict.fromkeys(own, (config.cert_file, config.key_file))
    return {signer: pair for signer, pair in own.items() if any(pair)}


def _authority(signer: str, certificate_file: str, key_file: str, loads: Loads) -> Authority:
    try:
        return Authority(certificate_file, key_file, loads)
    except (OSError, FormatError) as error:
        text = f"the CA of signer {signer} (certificate {certificate_file}, key {key_file}) cannot be used: {error}"
        raise StartError(text) from error


class SigningController:
    """Keys are names of requests. A rejected request gets the condition Failed."""

    def __init__(self, context: ControllerContext) -> None:
        config = context.config(CSRSigningConfig)
        if not files_of(config):
            log.info("Skipping CSR signer controller because no csr cert/key was specified")
        self._client, self._clock = context.client, context.clock
        loads = Loads(context.clock, context.queue_metrics)
        self._authorities = {signer: _authority(signer, *pair, loads) for signer, pair in files_of(config).items()}
        self._longest_s = config.duration_s
        self._requests = context.cache(CERTIFICATE_SIGNING_REQUESTS).store

    async def sync(self, key: str) -> None:
        request = self._requests.get(key)
        authority = self._authorities.get(request.spec.signer_name) if request is not None else None
        if request is None or authority is None:
            return
        now = self._clock.now()
        update = plan.plan(request, self._longest_s, now)
        if isinstance(update, plan.Signing):
            pem = authority.sign(update.request, request.spec.usages, update.lifetime, now)
            update = plan.signed(request, pem)
        if update is not None:
            await writes.send(self._client, update)


CONTROLLER = Controller(
    SigningController,
    Queue(
        "certificate",
        Watch(CERTIFICATE_SIGNING_REQUESTS, changed=own_key),
        sync=SigningController.sync,
        failures=unhandled("Sync {key} failed with : {error}"),
        workers=WORKERS,
        limiter=lambda context: RetryLimiter(base_s=RETRY_S),
    ),
    enabled=lambda context: bool(files_of(context.config(CSRSigningConfig))),
    announces=starting("certificate controller", name="csrsigning-kubelet-serving")
    + starting("certificate controller", name="csrsigning-kubelet-client")
    + starting("certificate controller", name="csrsigning-kube-apiserver-client")
    + starting("certificate controller", name="csrsigning-legacy-unknown"),
)
