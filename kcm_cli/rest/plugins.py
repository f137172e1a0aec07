"""Credentials from exec plugins and from the oidc and gcp providers, which kubernetes-asyncio runs.

What it leaves open is added: renewal by the plugin's expiry, certificates that are kept in memory only.
"""

import re
import tempfile
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kcm_cli.component.clock import Clock
from kcm_cli.rest import asyncio_config, kubeconfig
from kcm_cli.rest.credentials import Credentials, Fixed, Lease, Renewing
from kcm_cli.rest.errors import CredentialsError, one_line

Called = Callable[[int, str], None]
"""Is told of each run of an exec plugin: its exit code (1 where it has none), and how it ended."""

_EXIT_CODE = re.compile(r"exec: process returned (-?\d+)")


def uncounted(code: int, status: str) -> None:
    """Counts nothing."""


PROVIDER_PERIOD_S = 60.0
"""How often the oidc and gcp providers look whether their token still holds."""


@dataclass(frozen=True, slots=True)
class Shown:
    """What a plugin or provider has us show to the server: a header, or a certificate and its key (PEM)."""

    credentials: Credentials
    cert_data: bytes = b""
    key_data: bytes = field(default=b"", repr=False)


async def ask(chosen: kubeconfig.Chosen, server: str, clock: Clock, called: Called = uncounted) -> Shown:
    """Run the user's plugin or provider for the server's URL. Raises CredentialsError."""
    if chosen.user.exec is None:
        called = uncounted
    modules = asyncio_config.load()
    with tempfile.TemporaryDirectory(prefix="kcm-") as folder, modules.own_temp_files():
        loader = modules.KubeConfigLoader(
            config_dict=_document(chosen, server), config_base_path=str(chosen.folder), temp_file_path=folder
        )
        try:
            await _counted(modules, loader.load_and_set(modules.Configuration()), called)
        except (modules.ConfigException, OSError, ValueError, KeyError) as error:
            raise CredentialsError(f"{chosen}: {one_line(error)}") from error
        credentials = _credentials(modules, loader, chosen, clock, called)
        return Shown(credentials, _content(loader, "cert_file"), _content(loader, "key_file"))


def _document(chosen: kubeconfig.Chosen, server: str) -> dict[str, Any]:
    """A kubeconfig with nothing but the way to credentials."""
    parts = kubeconfig.plugin_parts(chosen.user)
    return {
        "current-context": "kcm",
        "contexts": [{"name": "kcm", "context": {"cluster": "kcm", "user": "kcm"}}],
        "clusters": [{"name": "kcm", "cluster": {"server": server}}],
        "users": [{"name": "kcm", "user": parts}],
    }


def _content(loader: Any, name: str) -> bytes:
    path = getattr(loader, name, None)
    return Path(path).read_bytes() if path else b""


async def _counted(modules: asyncio_config.ConfigModules, run: Awaitable[object], called: Called) -> None:
    """Wait for a run of a plugin, and tell how the process ended; what it printed is another matter."""
    try:
        await run
    except OSError:
        called(1, "plugin_not_found_error")
        raise
    except modules.ConfigException as error:
        code = _EXIT_CODE.search(str(error))
        called(int(code[1]) if code else 0, "plugin_execution_error" if code else "no_error")
        raise
    called(0, "no_error")


def _credentials(
    modules: asyncio_config.ConfigModules, loader: Any, chosen: kubeconfig.Chosen, clock: Clock, called: Called
) -> Credentials:
    if chosen.user.exec is not None:
        return _renewed(modules, loader, lambda: _counted(modules, loader.load_from_exec_plugin(), called), clock)
    if loader.provider == "oidc":
        return _renewed(modules, loader, loader._load_oid_token, clock)
    if loader.provider == "gcp":
        return _renewed(modules, loader, loader.load_gcp_token, clock)
    return Fixed(getattr(loader, "token", ""))


def _renewed(modules: asyncio_config.ConfigModules, loader: Any, again: Any, clock: Clock) -> Renewing:
    def lease() -> Lease:
        expiry = getattr(loader, "exec_plugin_expiry", None)
        left = None if expiry is None else (expiry - clock.now()).total_seconds()
        return Lease(getattr(loader, "token", ""), left if loader.provider is None else PROVIDER_PERIOD_S)

    async def source() -> Lease:
        vars(loader).pop("exec_plugin_expiry", None)  # it would keep a token that the server rejected
        try:
            await again()
        except (modules.ConfigException, OSError, ValueError, KeyError) as error:
            raise CredentialsError(one_line(error)) from error
        return lease()

    return Renewing(source, clock, lease())
