"""bootstrap-signer-controller: signs the ConfigMap cluster-info with every bootstrap token. Off by default.

A joining node verifies the signature with its token: the cluster has the same one.

upstream: pkg/controller/bootstrap/bootstrapsigner.go
"""

import math

from kcm_cli.api.core import CONFIG_MAPS, SECRETS, ConfigMap, Secret
from kcm_cli.controllers.bootstrap_signer.plan import NAME, NAMESPACE, plan
from kcm_cli.engine import writes
from kcm_cli.engine.context import ControllerContext
from kcm_cli.engine.controller import Controller, Keys, Queue, Watch
from kcm_cli.planning import bootstrap_tokens
from kcm_cli.rest.errors import NotFound
from kcm_cli.runtime.informer import Scope

KEY = f"{NAMESPACE}/{NAME}"


class Signer:
    """The only key is that of the ConfigMap."""

    def __init__(self, context: ControllerContext) -> None:
        self._client, self._clock = context.client, context.clock
        self._infos = context.cache(CONFIG_MAPS).store
        self._secrets = context.cache(SECRETS).store

    async def sync(self, key: str) -> float | None:
        info = self._infos.get(key)
        if info is None:
            return None
        now, secrets = self._clock.now(), self._secrets.list()
        ends_s = [left for secret in secrets if 0 < (left := bootstrap_tokens.left_s(secret, now)) < math.inf]
        update = plan(info, secrets, now)
        if update is not None:
            try:
                await writes.send(self._client, update)
            except NotFound:
                return None
        return min(ends_s, default=None)


def the_config_map(signer: Signer, changed: ConfigMap | Secret) -> Keys:
    """The only key, for every change."""
    return (KEY,)


_TOKENS = Scope(namespace=bootstrap_tokens.NAMESPACE, field_selector=bootstrap_tokens.FIELD_SELECTOR)
CONTROLLER = Controller(
    Signer,
    Queue(
        "bootstrap_signer_queue",
        watches=(
            Watch(
                CONFIG_MAPS,
                changed=the_config_map,
                scope=Scope(namespace=NAMESPACE, field_selector=f"metadata.name={NAME}"),
            ),
            Watch(SECRETS, the_config_map, scope=_TOKENS),
        ),
        sync=Signer.sync,
    ),
)
