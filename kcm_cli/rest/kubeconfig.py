"""Reads a kubeconfig and validates it: each fault gets one clear line.

upstream: staging/src/k8s.io/client-go/tools/clientcmd/{client_config,validation}.go
"""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import yaml

from kcm_cli.machinery import nulls
from kcm_cli.machinery.codec import Doc
from kcm_cli.machinery.quoting import quote
from kcm_cli.machinery.yaml_errors import described, load, without_dates
from kcm_cli.rest import proxies
from kcm_cli.rest.errors import AccessError, KubeconfigError

_Base: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_Loader: Any = type("_Loader", (_Base,), {"yaml_implicit_resolvers": without_dates(_Base)})

_MODES = ("Never", "IfAvailable", "Always")
_SHOWN = 10
_OLD_PLUGINS = ("client.authentication.k8s.io/v1alpha1", "client.authentication.k8s.io/v1beta1")
"""Versions in which interactiveMode is IfAvailable by default."""


class Named(msgspec.Struct, frozen=True):
    """Base of the entries of the lists. One without a name has the empty one."""

    name: str = ""


class Extension(Named, frozen=True):
    """An entry of ``extensions``. Exec plugins get the cluster's that is meant for them."""

    extension: Any = None


class Cluster(msgspec.Struct, frozen=True, rename="kebab"):
    """A server's address and trust."""

    server: str = ""
    certificate_authority: str = ""
    certificate_authority_data: str = ""
    insecure_skip_tls_verify: bool = False
    tls_server_name: str = ""
    proxy_url: str = ""
    disable_compression: bool = False
    extensions: list[Extension] | None = None


class Exec(msgspec.Struct, frozen=True, rename="camel"):
    """An exec credential plugin. ``interactive_mode``: Never, IfAvailable or Always."""

    command: str = ""
    api_version: str = ""
    args: list[str] | None = None
    env: list[dict[str, str]] | None = None
    install_hint: str = ""
    provide_cluster_info: bool = False
    interactive_mode: str = ""


class Provider(msgspec.Struct, frozen=True):
    """An auth provider (oidc, gcp, azure). kube-controller-manager has none of them."""

    name: str = ""


class User(msgspec.Struct, frozen=True, rename="kebab"):
    """Credentials."""

    client_certificate: str = ""
    client_certificate_data: str = ""
    client_key: str = ""
    client_key_data: str = ""
    token: str = ""
    token_file: str = msgspec.field(default="", name="tokenFile")
    username: str = ""
    password: str = ""
    exec: Exec | None = None
    auth_provider: Provider | None = None
    impersonate: str = msgspec.field(default="", name="as")
    impersonate_uid: str = msgspec.field(default="", name="as-uid")
    impersonate_groups: list[str] | None = msgspec.field(default=None, name="as-groups")
    impersonate_extra: dict[str, list[str]] | None = msgspec.field(default=None, name="as-user-extra")


class Context(msgspec.Struct, frozen=True):
    """A cluster, a user and the namespace of names that have none."""

    cluster: str = ""
    user: str = ""
    namespace: str = ""


class NamedCluster(Named, frozen=True):
    cluster: Cluster | None = None


class NamedUser(Named, frozen=True):
    user: User | None = None


class NamedContext(Named, frozen=True):
    context: Context | None = None


class Kubeconfig(msgspec.Struct, frozen=True, rename="kebab"):
    """The file. Lists may be null."""

    current_context: str | None = None
    clusters: list[NamedCluster] | None = None
    users: list[NamedUser] | None = None
    contexts: list[NamedContext] | None = None


class Chosen(msgspec.Struct, frozen=True):
    """The cluster, user and context that were chosen. cluster_folder, user_folder: those to which their relative paths
    refer. namespace: the context's; may be empty."""

    path: str
    context: str
    cluster: Cluster
    user: User
    cluster_folder: Path = Path()
    user_folder: Path = Path()
    namespace: str = ""

    def __str__(self) -> str:
        return f"kubeconfig {self.path}: context {quote(self.context)}"


def read(path: str, *, server: str = "") -> Chosen:
    """The current context, with another server where one is given. path: of a file, or of several as KUBECONFIG has
    them, of which the first one counts that has a context, a cluster or a user of a name. Raises KubeconfigError."""
    paths = _paths(path)
    files = tuple(_file(one, may_be_empty=len(paths) > 1) for one in paths)
    name = next((file.config.current_context for file in files if file.config.current_context), "")
    return _choose(path, files, name or "", server)


class _File(msgspec.Struct, frozen=True):
    folder: Path
    config: Kubeconfig


def _file(path: Path, *, may_be_empty: bool) -> _File:
    config = _config(path, may_be_empty=may_be_empty)
    return _File(path.absolute().parent, config)


def _paths(path: str) -> list[Path]:
    """The files that exist, of several."""
    if os.path.exists(path):
        return [Path(path)]
    return [Path(one) for one in path.split(os.pathsep) if one and os.path.exists(one)] or [Path(path)]


def _config(path: Path, *, may_be_empty: bool) -> Kubeconfig:
    try:
        config = msgspec.convert(nulls.without(_parse(path, may_be_empty=may_be_empty), Kubeconfig), Kubeconfig)
    except msgspec.ValidationError as error:
        raise KubeconfigError(f"kubeconfig {path} is malformed: {error}") from error
    _unique(path, config)
    return config


def _parse(path: Path, *, may_be_empty: bool) -> Doc:
    try:
        text = path.read_bytes()
    except OSError as error:
        raise KubeconfigError(f"cannot read kubeconfig {path}: {error.strerror}") from error
    try:
        doc = load(text, _Loader)
    except yaml.YAMLError as error:
        raise KubeconfigError(f"kubeconfig {path} is not YAML: {described(error)}") from error
    if doc is None and may_be_empty:
        return {}
    if doc is None:
        raise KubeconfigError(f"kubeconfig {path} is empty")
    if not isinstance(doc, dict):
        raise KubeconfigError(f"kubeconfig {path} is malformed: expected a mapping at the top")
    if (doc.get("kind") or "Config", doc.get("apiVersion") or "v1") != ("Config", "v1"):
        raise KubeconfigError(f"kubeconfig {path} is no Config of v1")
    return doc


def _unique(path: Path, config: Kubeconfig) -> None:
    """Raises KubeconfigError for two clusters, users or contexts of the same name: which one is meant is not known."""
    for kind, named in (("clusters", config.clusters), ("users", config.users), ("contexts", config.contexts)):
        seen: set[str] = set()
        for item in named or ():
            if item.name in seen:
                raise KubeconfigError(f"kubeconfig {path}: {kind}: duplicate name {quote(item.name)}")
            seen.add(item.name)


def _choose(path: str, files: Sequence[_File], name: str, server: str) -> Chosen:
    if not name:
        if server:
            return Chosen(path, "", Cluster(server=server), User(), files[0].folder, files[0].folder)
        raise KubeconfigError(f"kubeconfig {path} has no current-context")
    shown = f"kubeconfig {path}: context {quote(name)}"
    context = _context(path, files, name)
    clusters = ((file, item) for file in files for item in file.config.clusters or () if item.name == context.cluster)
    at, cluster = next(((file, item.cluster) for file, item in clusters), (files[0], None))
    if cluster is None and not server:
        raise KubeconfigError(f"{shown} names no known cluster ({quote(context.cluster)})")
    users = ((file, item) for file in files for item in file.config.users or () if item.name == context.user)
    beside, user = next(((file, item.user) for file, item in users), (files[0], None))
    if context.user and user is None:
        raise KubeconfigError(f"{shown} names no known user ({quote(context.user)})")
    cluster = msgspec.structs.replace(cluster or Cluster(), **({"server": server} if server else {}))
    chosen = Chosen(path, name, cluster, user or User(), at.folder, beside.folder, context.namespace)
    _check(chosen)
    return chosen


def _context(path: str, files: Sequence[_File], name: str) -> Context:
    contexts = [item for file in files for item in file.config.contexts or ()]
    named = next((item for item in contexts if item.name == name), None)
    if named is None:
        names = [item.name for item in contexts]
        shown = ", ".join([*names[:_SHOWN], *(["…"] if len(names) > _SHOWN else [])]) or "none"
        raise KubeconfigError(f"kubeconfig {path} has no context {quote(name)} (it has: {shown})")
    if named.context is None:
        raise KubeconfigError(f"kubeconfig {path}: context {quote(name)} is empty: it needs a cluster and a user")
    return named.context


def _check(chosen: Chosen) -> None:
    cluster, user = chosen.cluster, chosen.user
    paths = {
        "certificate-authority": cluster.certificate_authority,
        "client-certificate": user.client_certificate,
        "client-key": user.client_key,
        "tokenFile": user.token_file,
    }
    faults = [f"{field} has a NUL, which no path has" for field, path in paths.items() if "\0" in path]
    if not cluster.server:
        faults.append("the cluster has no server")
    if cluster.insecure_skip_tls_verify and (cluster.certificate_authority or cluster.certificate_authority_data):
        faults.append("certificate-authority and insecure-skip-tls-verify exclude each other")
    if cluster.proxy_url:
        try:
            proxies.checked("proxy-url", cluster.proxy_url)
        except AccessError as error:
            faults.append(str(error))
    has_cert = user.client_certificate or user.client_certificate_data
    if has_cert and not (user.client_key or user.client_key_data):
        faults.append("the user has a client certificate without client-key")
    if user.token and user.username:
        faults.append("the user has both a token and a username")
    if user.exec is not None:
        faults.extend(_faults(user.exec))
    if user.auth_provider is not None:
        both = " beside an exec plugin" if user.exec is not None else ""
        faults.append(f'no auth provider found for name "{user.auth_provider.name}"{both}')
    if not user.impersonate and (user.impersonate_uid or user.impersonate_groups or user.impersonate_extra):
        faults.append("as-uid, as-groups and as-user-extra need as")
    if faults:
        raise KubeconfigError(f"{chosen}: {'; '.join(faults)}")


def _faults(plugin: Exec) -> list[str]:
    found = []
    if not (plugin.command and plugin.api_version):
        found.append("the user's exec plugin needs command and apiVersion")
    if not all(variable.get("name") for variable in plugin.env or ()):
        found.append("the environment variables of the user's exec plugin need names")
    variables = [word for variable in plugin.env or () for word in variable.values()]
    if any("\0" in word for word in (plugin.command, *(plugin.args or ()), *variables)):
        found.append("the user's exec plugin has a NUL in its command, args or env")
    if not plugin.interactive_mode and plugin.api_version not in _OLD_PLUGINS:
        found.append("the user's exec plugin needs interactiveMode (Never, IfAvailable or Always)")
    elif plugin.interactive_mode not in ("", *_MODES):
        found.append(f'the user\'s exec plugin has an invalid interactiveMode "{plugin.interactive_mode}"')
    return found
