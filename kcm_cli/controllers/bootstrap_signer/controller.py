"""bootstrap-signer-controller: signs the ConfigMap cluster-info with every bootstrap token. Off by default.

A node that joins knows a token and nothing else: by the signature it knows that the cluster knows it, too.

upstream: pkg/controller/bootstrap/bootstrapsigner.go
"""

import math

from kcm_cli.api.core import CONFIG_MAPS, SECRETS, ConfigMap, Secret
from kcm_cli.controllers.bootstrap_signer.plan import NAME, NAMESPACE, plan
from kcm_cli.engine import writes
from kcm_cli.engine.context import ControllerContext, Runnable
from kcm_cli.planning import bootstrap_tokens
from kcm_cli.rest.errors import NotFound
from kcm_cli.runtime.informer import Scope

KEY = f"{NAMESPACE}/{NAME}"


def build(context: ControllerContext) -> Runnable:
    signer = Signer(context)
    return context.worker(signer.queue, signer.sync, count=1, waits_for=(signer.infos, signer.secrets))


class Signer:
    """There is one key: that of the ConfigMap."""

    def __init__(self, context: ControllerContext) -> None:
        self._client, self._clock = context.client, context.clock
        self.queue = context.queue("bootstrap_signer_queue")
        self.infos = context.informers.get(
            CONFIG_MAPS, Scope(namespace=NAMESPACE, field_selector=f"metadata.name={NAME}")
        )
        scope = Scope(namespace=bootstrap_tokens.NAMESPACE, field_selector=bootstrap_tokens.FIELD_SELECTOR)
        self.secrets = context.informers.get(SECRETS, scope)
        self.infos.listen(on_add=self._changed, on_update=lambda old, new: self._changed(new))
        self.secrets.listen(
            on_add=self._changed, on_update=lambda old, new: self._changed(new), on_delete=self._changed
        )

    async def sync(self, key: str) -> float | None:
        info = self.infos.store.get(key)
        if info is None:
            return None
        now, secrets = self._clock.now(), self.secrets.store.list()
        update = plan(info, secrets, now)
        if update is not None:
            try:
                await writes.update(self._client, update)
            except NotFound:
                return None
        ends_s = [left for secret in secrets if 0 < (left := bootstrap_tokens.left_s(secret, now)) < math.inf]
        return min(ends_s, default=None)

    def _changed(self, _: ConfigMap | Secret) -> None:
        self.queue.add(KEY)
