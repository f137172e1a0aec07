"""The API server's address, trust and credentials, from a kubeconfig or a pod's service account.

A client library's loader would add 14 MiB of modules to every manager for a few fields. Exec plugins are configured
here and run when credentials are needed (see ``plugins``).

upstream: staging/src/k8s.io/client-go/tools/clientcmd, staging/src/k8s.io/client-go/rest/config.go
"""

import os
import stat
from collections.abc import Callable, Mapping
from pathlib import Path
from urllib.parse import quote, urlsplit

import msgspec
from msgspec.structs import replace

from kcm_cli.component.clock import Clock, LoopClock
from kcm_cli.machinery import quoting
from kcm_cli.machinery.addresses import host_and_port
from kcm_cli.machinery.codec import Doc
from kcm_cli.machinery.formats import base64_text, from_base64
from kcm_cli.rest import kubeconfig, plugins
from kcm_cli.rest.credentials import ANONYMOUS, Credentials, Fixed, Renewing, basic, bearer, from_file, read_token
from kcm_cli.rest.errors import AccessError, KubeconfigError, NotInCluster, TLSFilesError
from kcm_cli.rest.metrics import NO_PLUGIN_METRICS, PluginMetrics
from kcm_cli.rest.proxies import environment_proxy
from kcm_cli.rest.tls import TLSFiles

_PLUGIN_CONFIG = "client.authentication.k8s.io/exec"
SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")


class Access(msgspec.Struct, frozen=True):
    """One way to one API server.

    server: URL, with the path under which the API is served. tls: None if and only if the server's scheme is http.
    proxy: URL of an HTTP or SOCKS5 proxy. certificate: returns the current certificate and key (PEM), which replace
    those of ``tls``, or None. impersonation: headers that every request carries. namespace: of names that have none, as
    the kubeconfig's context or the pod says; may be empty.
    """

    server: str
    tls: TLSFiles | None = None
    server_name: str = ""
    proxy: str = ""
    credentials: Credentials = msgspec.field(default_factory=lambda: ANONYMOUS)
    certificate: Callable[[], tuple[bytes, bytes] | None] = lambda: None
    impersonation: tuple[tuple[str, str], ...] = ()
    namespace: str = ""


async def load(
    *,
    path: str,
    master: str,
    clock: Clock,
    environ: Mapping[str, str] = os.environ,
    metrics: PluginMetrics = NO_PLUGIN_METRICS,
) -> Access:
    """The access of --kubeconfig and --master; without either, that of the pod's service account. Raises AccessError.

    path: of one file, or of several (``kubeconfig.read``). metrics: counts the runs of credential plugins.
    """
    if not path and not master:
        return _in_cluster(clock, environ)
    if not path:
        return _by_address(with_scheme(master, tls=False), environ)
    return await _from_kubeconfig(kubeconfig.read(path, server=master), clock, environ, metrics)


def check(*, path: str, master: str, environ: Mapping[str, str] = os.environ) -> None:
    """Check the kubeconfig, the address or the pod's token that ``load`` would use. Raises AccessError.

    Certificates are not read, and no plugin is run.
    """
    if path:
        chosen = kubeconfig.read(path, server=master)
        with_scheme(chosen.cluster.server, tls=True)
    elif master:
        with_scheme(master, tls=False)
    else:
        _in_cluster(LoopClock(), environ)


def with_scheme(server: str, *, tls: bool) -> str:
    """The server's URL; ``host:port`` gets a scheme. Raises AccessError for what is neither."""
    url = server if "://" in server else f"{'https' if tls else 'http'}://{server}"
    if not _is_address(url):
        shown = quoting.quote(server)
        raise AccessError(f"the API server's address must be a URL or host:port, and {shown} is neither")
    scheme, _, rest = url.partition("://")
    return f"{scheme.lower()}://{rest.rstrip('/')}"


def _is_address(url: str) -> bool:
    if any(char.isspace() or not char.isprintable() for char in url):
        return False
    try:
        parts = urlsplit(url)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError:  # of a port, or of an address in brackets
        return False


def _by_address(server: str, environ: Mapping[str, str]) -> Access:
    """Over TLS it is the system's certificates that are trusted."""
    tls = TLSFiles() if server.startswith("https://") else None
    return Access(server, tls, proxy=environment_proxy(server, environ))


def _in_cluster(clock: Clock, environ: Mapping[str, str]) -> Access:
    host, port = environ.get("KUBERNETES_SERVICE_HOST"), environ.get("KUBERNETES_SERVICE_PORT")
    if not host or not port:
        raise NotInCluster("neither --kubeconfig nor --master was given, and this is no pod of a cluster")
    token = SERVICE_ACCOUNT / "token"
    read_token(token)
    server = f"https://{host_and_port(host, port)}"
    return Access(
        server,
        TLSFiles(ca_file=SERVICE_ACCOUNT / "ca.crt"),
        proxy=environment_proxy(server, environ),
        credentials=from_file(token, clock),
        namespace=own_namespace(),
    )


def own_namespace() -> str:
    """The namespace of this pod; empty if it is not told."""
    try:
        return (SERVICE_ACCOUNT / "namespace").read_text("ascii").strip()
    except (OSError, UnicodeDecodeError):
        return ""


async def _from_kubeconfig(
    chosen: kubeconfig.Chosen, clock: Clock, environ: Mapping[str, str], metrics: PluginMetrics
) -> Access:
    cluster, user = chosen.cluster, chosen.user
    trusts = cluster.certificate_authority or cluster.certificate_authority_data
    server = with_scheme(cluster.server, tls=bool(trusts or cluster.insecure_skip_tls_verify))
    proxy = cluster.proxy_url or environment_proxy(server, environ)
    if not server.startswith("https://"):  # nothing secret goes over plain HTTP
        return Access(server, proxy=proxy, impersonation=_impersonation(user), namespace=chosen.namespace)
    files = _tls_files(chosen)
    access = Access(
        server,
        files,
        server_name=cluster.tls_server_name,
        proxy=proxy,
        credentials=_credentials(chosen, clock),
        impersonation=_impersonation(user),
        namespace=chosen.namespace,
    )
    if user.exec is None or files.shows or access.credentials is not ANONYMOUS:
        return access
    plugin = plugins.plugin(chosen, _known_to_plugins(access, cluster), clock, metrics, environ)
    renewing = Renewing(plugin.source(), clock)
    return replace(access, credentials=renewing, certificate=lambda: renewing.certificate)


def _known_to_plugins(access: Access, cluster: kubeconfig.Cluster) -> Doc:
    """client.authentication.k8s.io Cluster."""
    files = access.tls or TLSFiles()
    try:
        ca_data = files.ca_data or (files.ca_file.read_bytes() if files.ca_file is not None else b"")
    except OSError as error:
        raise TLSFilesError(f"cannot read CA file {files.ca_file}: {error.strerror}", ca="read_error") from error
    config = next((one.extension for one in cluster.extensions or () if one.name == _PLUGIN_CONFIG), None)
    optional: Doc = {
        "tls-server-name": cluster.tls_server_name,
        "insecure-skip-tls-verify": cluster.insecure_skip_tls_verify,
        "certificate-authority-data": base64_text(ca_data),
        "proxy-url": cluster.proxy_url,
        "disable-compression": cluster.disable_compression,
        "config": config,
    }
    return {"server": access.server, **{key: value for key, value in optional.items() if value}}


def _tls_files(chosen: kubeconfig.Chosen) -> TLSFiles:
    cluster, user, folder = chosen.cluster, chosen.user, chosen.user_folder
    authority = cluster.certificate_authority, cluster.certificate_authority_data
    ca_file, ca_data = _place(chosen, chosen.cluster_folder, *authority)
    cert_file, cert_data = _place(chosen, folder, user.client_certificate, user.client_certificate_data)
    key_file, key_data = _place(chosen, folder, user.client_key, user.client_key_data)
    return TLSFiles(ca_file, ca_data, cert_file, cert_data, key_file, key_data, cluster.insecure_skip_tls_verify)


def _place(chosen: kubeconfig.Chosen, folder: Path, path: str, data: str) -> tuple[Path | None, bytes]:
    """A file's path, or the bytes that stand inline and win over it."""
    if data:
        try:
            return None, from_base64(data)
        except ValueError as error:  # also of text beyond ASCII
            raise KubeconfigError(f"{chosen}: certificate or key data is not base64: {error}") from error
    if not path:
        return None, b""
    file = folder / path
    try:
        regular = stat.S_ISREG(file.stat().st_mode)
    except (FileNotFoundError, NotADirectoryError):
        regular = False
    except OSError as error:  # such as a name that is too long
        raise KubeconfigError(f"{chosen}: cannot read {file}: {error.strerror}") from error
    if not regular:
        raise KubeconfigError(f"{chosen}: file does not exist: {file}")
    return file, b""


def _credentials(chosen: kubeconfig.Chosen, clock: Clock) -> Credentials:
    user = chosen.user
    if user.token_file:
        return from_file(chosen.user_folder / user.token_file, clock, before=user.token)
    if user.token:
        return Fixed(bearer(user.token))
    if user.username and user.password:
        return Fixed(basic(user.username, user.password))
    return ANONYMOUS


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
