"""The trust of the server: the CA of clients, the CA of proxies, and the headers in which proxies name users.

Each part comes from a file, or from the ConfigMap in which the API server publishes its own. ``Trust`` holds a complete
state; replacing it notifies the listeners.
"""

from collections.abc import Callable, Mapping
from itertools import chain
from pathlib import Path

import msgspec
from cryptography import x509
from msgspec.structs import replace

from kcm_cli.component.auth_config import AuthenticationConfig
from kcm_cli.component.user_headers import ProxyHeaders
from kcm_cli.machinery import codec
from kcm_cli.rest.ca_bundles import CaBundle, parse_bundle


class TrustState(msgspec.Struct, frozen=True):
    """A consistent state. None: certificates are not used for that purpose."""

    clients: CaBundle | None = None
    proxies: CaBundle | None = None
    headers: ProxyHeaders = ProxyHeaders()

    @property
    def authorities(self) -> tuple[x509.Certificate, ...] | None:
        """The authorities of client certificates; None if no certificates are requested."""
        bundles = [one for one in (self.clients, self.proxies) if one is not None]
        return tuple(chain.from_iterable(one.certificates for one in bundles)) if bundles else None


class Trust:
    """Holds the present state."""

    def __init__(self, state: TrustState) -> None:
        self._state = state
        self._listeners: list[Callable[[TrustState], None]] = []

    @property
    def state(self) -> TrustState:
        return self._state

    def on_change(self, listener: Callable[[TrustState], None]) -> None:
        """Subscribe to new states."""
        self._listeners.append(listener)

    def replace(self, state: TrustState) -> None:
        """Switch to another state, if it differs."""
        if state == self._state:
            return
        self._state = state
        for listener in self._listeners:
            listener(state)


def from_files(config: AuthenticationConfig, known: TrustState | None = None) -> tuple[TrustState, list[str]]:
    """The state with the parts from files replaced, and errors. Invalid parts are not replaced."""
    problems: list[str] = []
    state = known or TrustState()
    if config.client_ca_file:
        bundle = _read(config.client_ca_file, "client-ca-file", problems)
        state = replace(state, clients=bundle or state.clients)
    if config.requestheader_client_ca_file:
        bundle = _read(config.requestheader_client_ca_file, "requestheader-client-ca-file", problems)
        state = replace(state, proxies=bundle or state.proxies, headers=_configured(config))
    return state, problems


def from_config_map(
    config: AuthenticationConfig, data: Mapping[str, str], known: TrustState
) -> tuple[TrustState, list[str]]:
    """The state with the parts from the ConfigMap replaced, and errors. Invalid parts are not replaced."""
    problems: list[str] = []
    state = known
    if not config.client_ca_file:
        bundle = _parse(data, "client-ca-file", problems)
        state = replace(state, clients=bundle or state.clients)
    if not config.requestheader_client_ca_file:
        bundle = _parse(data, "requestheader-client-ca-file", problems)
        headers = _published(data, problems)
        if bundle is not None and headers is not None:
            state = replace(state, proxies=bundle, headers=headers)
    return state, problems


def without_config_map(config: AuthenticationConfig, known: TrustState) -> TrustState:
    """The state without the parts that come from the ConfigMap."""
    state = known
    if not config.client_ca_file:
        state = replace(state, clients=None)
    if not config.requestheader_client_ca_file:
        state = replace(state, proxies=None, headers=ProxyHeaders())
    return state


def _configured(config: AuthenticationConfig) -> ProxyHeaders:
    return ProxyHeaders(
        names=config.requestheader_username_headers,
        uids=config.requestheader_uid_headers,
        groups=config.requestheader_group_headers,
        extra_prefixes=config.requestheader_extra_headers_prefix,
        allowed=config.requestheader_allowed_names,
    )


def _published(data: Mapping[str, str], problems: list[str]) -> ProxyHeaders | None:
    def words(key: str) -> tuple[str, ...]:
        return codec.decode(data.get(key) or "[]", tuple[str, ...])  # null is empty, as in Go

    try:
        return ProxyHeaders(
            names=words("requestheader-username-headers"),
            uids=words("requestheader-uid-headers"),
            groups=words("requestheader-group-headers"),
            extra_prefixes=words("requestheader-extra-headers-prefix"),
            allowed=words("requestheader-allowed-names"),
        )
    except codec.DecodeError as error:
        problems.append(f"requestheader headers: {error}")
        return None


def _parse(data: Mapping[str, str], key: str, problems: list[str]) -> CaBundle | None:
    pem = data.get(key, "")
    if not pem:
        return None
    try:
        return parse_bundle(pem.encode())
    except ValueError as error:
        problems.append(f"{key}: {error}")
        return None


def _read(path: str, flag: str, problems: list[str]) -> CaBundle | None:
    try:
        return parse_bundle(Path(path).read_bytes())
    except OSError as error:
        problems.append(f"{flag}: cannot read {path}: {error.strerror}")
    except ValueError:
        problems.append(f"{flag}: {path} holds no CA certificate")
    return None
