"""token-cleaner-controller: deletes expired bootstrap tokens. Off by default.

upstream: pkg/controller/bootstrap/tokencleaner.go
"""

import math
from contextlib import suppress

from kcm_cli.api.core import SECRETS
from kcm_cli.engine.context import ControllerContext
from kcm_cli.engine.controller import Controller, Queue, Watch, own_key, starting
from kcm_cli.engine.worker import unhandled
from kcm_cli.planning import bootstrap_tokens
from kcm_cli.rest.errors import Conflict, NotFound
from kcm_cli.runtime.informer import Scope


class TokenCleaner:
    """Keys are Secrets with bootstrap tokens."""

    def __init__(self, context: ControllerContext) -> None:
        self._client, self._clock = context.client, context.clock
        self._secrets = context.cache(SECRETS).store

    async def sync(self, key: str) -> float | None:
        secret = self._secrets.get(key)
        left_s = math.inf if secret is None else bootstrap_tokens.left_s(secret, self._clock.now())
        if secret is None or math.isinf(left_s):
            return None
        if left_s > 0:
            return left_s
        version = secret.metadata.resource_version
        with suppress(NotFound, Conflict):  # deleted, recreated or prolonged: its event queues the key
            await self._client.delete(
                SECRETS,
                secret.namespace,
                secret.name,
                uid=secret.uid,
                resource_version=version,
                reason="bootstrap token has expired",
            )
        return None


CONTROLLER = Controller(
    TokenCleaner,
    Queue(
        "token_cleaner",
        Watch(
            SECRETS,
            changed=own_key,
            scope=Scope(namespace=bootstrap_tokens.NAMESPACE, field_selector=bootstrap_tokens.FIELD_SELECTOR),
        ),
        sync=TokenCleaner.sync,
        failures=unhandled("Sync {key} failed with : {error}"),
    ),
    announces=starting("token cleaner controller"),
)
