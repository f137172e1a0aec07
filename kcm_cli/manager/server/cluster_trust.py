"""Reads client CAs and proxy headers from the ConfigMap in which the API server publishes its own, and watches it.

The first read has to succeed within FIRST_S, unless failures are tolerated. After later failures the last state is
kept, unless the ConfigMap is gone: whoever revokes a CA may delete it, and API servers make it again of their own.

upstream: staging/src/k8s.io/apiserver/pkg/server/options/authentication.go, server/dynamiccertificates
"""

import asyncio
import logging
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from kcm_cli.api.core import CONFIG_MAPS, ConfigMap
from kcm_cli.component.auth_config import AuthenticationConfig
from kcm_cli.component.clock import Clock
from kcm_cli.machinery.errors import text_of
from kcm_cli.manager.errors import RunError
from kcm_cli.manager.server.trust import Trust, from_config_map, without_config_map
from kcm_cli.rest.client import Client
from kcm_cli.rest.errors import AccessError, ApiError, NotFound
from kcm_cli.rest.transport import Request, RequestError
from kcm_cli.runtime.backoff import Backoff
from kcm_cli.runtime.loads import CLIENT_CA_CONFIG_MAP, PROXY_HEADERS_CONFIG_MAP, Loads
from kcm_cli.runtime.watch_limits import LATE_S
from kcm_cli.runtime.wire import Bookmark, EventDecoder

log = logging.getLogger(__name__)

NAMESPACE = "kube-system"
NAME = "extension-apiserver-authentication"
FIRST_S = 10.0
_RETRY_S = 1.0
_WATCH_S = 300
_GONE = "0"
"""The version of a ConfigMap that is not there."""
_FAILURES = (AccessError, TimeoutError, RequestError)


class ClusterTrust:
    """Updates the trust from the ConfigMap."""

    def __init__(
        self, config: AuthenticationConfig, client: Client, trust: Trust, clock: Clock, rng: random.Random, loads: Loads
    ) -> None:
        self._config = config
        self._client = client
        self._trust = trust
        self._clock = clock
        self._rng = rng
        self._loads = loads

    async def follow(self) -> None:
        """Read the ConfigMap and watch it until cancelled. Raises RunError if the first read is required and fails."""
        version, backoff = await self._first(), Backoff(self._rng)
        while True:
            pause_s = _RETRY_S * (1.0 + self._rng.random())
            try:
                if version:
                    await self._wait_for_change(version)
                version = await self._read()
            except _FAILURES as error:
                if isinstance(error, NotFound) and error.details.name == NAME:
                    version = self._gone()
                else:
                    fields = {"err": text_of(error)}
                    log.info("Cannot read authentication settings, keeping the last", extra={"fields": fields})
                    version, pause_s = "", backoff.next_s(self._clock.monotonic())
            await self._clock.sleep(pause_s)

    def _gone(self) -> str:
        """Trust nothing that the ConfigMap vouched for. upstream: kubernetes#140219, open; v1.36 goes on to trust it"""
        state = without_config_map(self._config, self._trust.state)
        if state != self._trust.state:
            log.warning(
                "Authentication settings are gone, not trusting the last", extra={"fields": {"configmap": NAME}}
            )
            self._trust.replace(state)
        return _GONE

    async def _first(self) -> str:
        deadline = self._clock.monotonic() + FIRST_S
        while True:
            try:
                return await self._read()
            except _FAILURES as error:
                final = isinstance(error, ApiError) and error.status in (401, 403, 404)
                if final or self._clock.monotonic() + _RETRY_S > deadline:
                    return self._give_up(error)
            await self._clock.sleep(_RETRY_S)

    def _give_up(self, error: Exception) -> str:
        why = f"unable to load configmap based request-header-client-ca-file: {text_of(error)}"
        if not self._config.tolerate_lookup_failure:
            raise RunError(why) from error
        log.warning(
            "Continuing without the cluster's authentication settings: client certificates are ignored",
            extra={"fields": {"err": why}},
        )
        return ""

    async def _read(self) -> str:
        """Read the ConfigMap; returns its version."""
        since = self._loads.now()
        async with asyncio.timeout(FIRST_S):
            config_map = await self._client.ask(Request("GET", CONFIG_MAPS.gvr.path(NAMESPACE, NAME)), ConfigMap)
        state, problems = from_config_map(self._config, config_map.data or {}, self._trust.state)
        for problem in problems:
            log.error("Authentication setting ignored", extra={"fields": {"configmap": NAME, "err": problem}})
        self._trust.replace(state)
        self._loads.loaded(CLIENT_CA_CONFIG_MAP, since)
        self._loads.loaded(PROXY_HEADERS_CONFIG_MAP, since)
        return config_map.metadata.resource_version

    async def _wait_for_change(self, version: str) -> None:
        """Wait until the ConfigMap has another version than ``version``, or until the watch ends, or should have.

        The watch starts without a version, since that of the object may be too old for the API server.
        """
        decoder = EventDecoder(CONFIG_MAPS)
        query = (("timeoutSeconds", str(_WATCH_S)),)
        selector = f"metadata.name={NAME}"
        async with (
            _limited(_WATCH_S + LATE_S),
            self._client.watch(CONFIG_MAPS, NAMESPACE, field_selector=selector, query=query) as stream,
        ):
            async for chunk in stream.chunks:
                for event in decoder.feed(chunk):
                    if isinstance(event, Bookmark):
                        continue
                    if event.type == "DELETED" or event.object.metadata.resource_version != version:
                        return


@asynccontextmanager
async def _limited(seconds: float) -> AsyncIterator[None]:
    """Leaves the block after this time."""
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            yield
