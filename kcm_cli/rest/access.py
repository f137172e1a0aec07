"""Where the API server is, whom to trust, and who we are: from a kubeconfig or from a pod's service account.

kubernetes-asyncio reads the configuration and runs plugins; what it leaves open is added here: token files that
are read anew, renewal by the plugin's expiry, impersonation, proxies of the environment.

upstream: staging/src/k8s.io/client-go/tools/clientcmd, staging/src/k8s.io/client-go/rest/config.go
"""

import binascii
import os
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote

from kcm_cli.component.clock import Clock
from kcm_cli.rest import asyncio_config, kubeconfig
from kcm_cli.rest.credentials import ANONYMOUS, Credentials, Fixed, Lease, Renewing, from_file, read_token
from kcm_cli.rest.errors import CredentialsError, KubeconfigError, NotInCluster, one_line
from kcm_cli.rest.proxies import environment_proxy
from kcm_cli.rest.tls import TLSFiles

SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
PROVIDER_PERIOD_S = 60.0
"""How often the oidc and gcp providers look whether their token still holds."""


@dataclass(frozen=True, slots=True)
class Access:
    """One way to one API server.

    server: URL, with a path where the server lives below one. tls: None for plain HTTP. proxy: URL of an HTTP
    proxy. impersonation: headers that every request carries.
    """

    server: str
    tls: TLSFiles | None = None
    server_name: str = ""
    proxy: str = ""
    credentials: Credentials = field(default_factory=lambda: ANONYMOUS)
    impersonation: tuple[tuple[str, str], ...] = ()


async def load(*, path: str, master: str, clock: Clock, environ: Mapping[str, str] = os.environ) -> Access:
    """What --kubeconfig and --master say; without either, what a pod finds. Raises AccessError."""
    if not path and not master:
        return _in_cluster(clock, environ)
    if not path:
        return Access(with_scheme(master, tls=False), proxy=environment_proxy(master, environ))
    return await _from_kubeconfig(kubeconfig.read(Path(path), server=master), clock, environ)


def with_scheme(server: str, *, tls: bool) -> str:
    """The server's URL; ``host:port`` gets a scheme."""
    if "://" not in server:
        server = f"{'https' if tls else 'http'}://{server}"
    return server.rstrip("/")


def _in_cluster(clock: Clock, environ: Mapping[str, str]) -> Access:
    modules = asyncio_config.load()
    token, ca = SERVICE_ACCOUNT / "token", SERVICE_ACCOUNT / "ca.crt"
    if not environ.get("KUBERNETES_SERVICE_HOST") or not environ.get("KUBERNETES_SERVICE_PORT"):
        raise NotInCluster("neither --kubeconfig nor --master was given, and this is no pod of a cluster")
    read_token(token)
    configuration = modules.Configuration()
    try:
        loader = modules.InClusterConfigLoader(str(token), str(ca), try_refresh_token=False, environ=environ)
        loader.load_and_set(configuration)
    except (modules.ConfigException, OSError) as error:
        raise NotInCluster(f"this pod's service account cannot be used: {error}") from error
    server = str(configuration.host)
    return Access(
        server,
        TLSFiles(ca_file=ca),
        proxy=environment_proxy(server, environ),
        credentials=from_file(token, clock),
    )


async def _from_kubeconfig(chosen: kubeconfig.Chosen, clock: Clock, environ: Mapping[str, str]) -> Access:
    cluster = chosen.cluster
    trusts = cluster.certificate_authority or cluster.certificate_authority_data
    server = with_scheme(cluster.server, tls=bool(trusts or cluster.insecure_skip_tls_verify))
    proxy = cluster.proxy_url or environment_proxy(server, environ)
    if not server.startswith("https://"):  # nothing secret goes over plain HTTP
        return Access(server, proxy=proxy, impersonation=_impersonation(chosen.user))
    modules = asyncio_config.load()
    with tempfile.TemporaryDirectory(prefix="kcm-") as inline, modules.own_temp_files():
        loader = modules.KubeConfigLoader(
            config_dict=kubeconfig.minimal(chosen, server),
            config_base_path=str(chosen.path.absolute().parent),
            temp_file_path=inline,
        )
        configuration = modules.Configuration()
        await _load(modules, loader, configuration, chosen)
        files = _tls_files(configuration, Path(inline))
    return Access(
        server,
        files,
        server_name=cluster.tls_server_name,
        proxy=proxy,
        credentials=_credentials(modules, loader, chosen, clock),
        impersonation=_impersonation(chosen.user),
    )


async def _load(
    modules: asyncio_config.ConfigModules, loader: Any, configuration: Any, chosen: kubeconfig.Chosen
) -> None:
    where = f'kubeconfig {chosen.path}: context "{chosen.context}"'
    try:
        await loader.load_and_set(configuration)
    except binascii.Error as error:
        raise KubeconfigError(f"{where}: certificate or key data is not base64: {error}") from error
    except (modules.ConfigException, OSError, ValueError, KeyError) as error:
        kind = CredentialsError if chosen.user.exec or chosen.user.auth_provider else KubeconfigError
        raise kind(f"{where}: {one_line(error)}") from error


def _tls_files(configuration: Any, inline: Path) -> TLSFiles:
    ca_file, ca_data = _place(configuration.ssl_ca_cert, inline)
    cert_file, cert_data = _place(configuration.cert_file, inline)
    key_file, key_data = _place(configuration.key_file, inline)
    insecure = not configuration.verify_ssl
    return TLSFiles(ca_file, ca_data, cert_file, cert_data, key_file, key_data, insecure)


def _place(path: str | None, inline: Path) -> tuple[Path | None, bytes]:
    """A file's path, or its bytes where kubernetes-asyncio made it from inline data."""
    if not path:
        return None, b""
    file = Path(path)
    return (None, file.read_bytes()) if file.is_relative_to(inline) else (file, b"")


def _credentials(
    modules: asyncio_config.ConfigModules, loader: Any, chosen: kubeconfig.Chosen, clock: Clock
) -> Credentials:
    user = chosen.user
    if user.token_file:
        return from_file(chosen.path.absolute().parent / user.token_file, clock)
    if user.exec is not None:
        return _renewed(modules, loader, loader.load_from_exec_plugin, clock)
    if loader.provider == "oidc":
        return _renewed(modules, loader, loader._load_oid_token, clock)
    if loader.provider == "gcp":
        return _renewed(modules, loader, loader.load_gcp_token, clock)
    return Fixed(getattr(loader, "token", ""))


def _renewed(modules: asyncio_config.ConfigModules, loader: Any, ask: Any, clock: Clock) -> Renewing:
    """Credentials that kubernetes-asyncio's loader gets from a plugin or provider."""

    def lease() -> Lease:
        expiry = getattr(loader, "exec_plugin_expiry", None)
        left = None if expiry is None else (expiry - clock.now()).total_seconds()
        return Lease(getattr(loader, "token", ""), left if loader.provider is None else PROVIDER_PERIOD_S)

    async def source() -> Lease:
        vars(loader).pop("exec_plugin_expiry", None)  # it would keep a token that the server rejected
        try:
            await ask()
        except (modules.ConfigException, OSError, ValueError, KeyError) as error:
            raise CredentialsError(one_line(error)) from error
        return lease()

    return Renewing(source, clock, lease())


def _impersonation(user: kubeconfig.User) -> tuple[tuple[str, str], ...]:
    if not user.impersonate:
        return ()
    headers = [("impersonate-user", user.impersonate)]
    if user.impersonate_uid:
        headers.append(("impersonate-uid", user.impersonate_uid))
    headers.extend(("impersonate-group", group) for group in user.impersonate_groups or ())
    for key, values in (user.impersonate_extra or {}).items():
        headers.extend((f"impersonate-extra-{quote(key.lower(), safe='')}", value) for value in values)
    return tuple(headers)
