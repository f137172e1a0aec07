"""Parses and validates the command line of the sandbox's kube-apiserver.

upstream: pkg/kubeapiserver/options, pkg/controlplane/apiserver/options (v1.36)
"""

import csv
import io
import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

import msgspec
import yaml

from kcm_cli.cli.kube_apiserver_flags import DONE, REFUSED, REFUSED_TOO, VERSIONS, WITHOUT_EFFECT, flags, names_of
from kcm_cli.component.featuregates import resolve
from kcm_cli.component.flag_values import parse_bool
from kcm_cli.component.flagset import Parsed
from kcm_cli.component.key_pairs import certificates, chain, pair_key, private_key
from kcm_cli.component.tokens import TrustedKey
from kcm_cli.component.user_headers import ProxyHeaders
from kcm_cli.component.version import BINARY, GIT_VERSION
from kcm_cli.machinery.quoting import quote
from kcm_cli.machinery.yaml_errors import load
from kcm_cli.sandbox.apiserver.entry.audit_log import AuditOptions
from kcm_cli.sandbox.apiserver.entry.audit_policy import policy_of
from kcm_cli.sandbox.apiserver.registry.catalog import built_in_versions
from kcm_cli.sandbox.apiserver.security.certificates import KeyPair, Keys
from kcm_cli.sandbox.apiserver.settings import DELETION_GAP_S, PLUGINS, Proxies, Settings
from kcm_cli.sandbox.apiserver.types import User
from kcm_cli.sandbox.networks import service_ranges

_OFF_BY_DEFAULT_WORDS = """
AlwaysAdmit AlwaysDeny AlwaysPullImages DenyServiceExternalIPs EventRateLimit ExtendedResourceToleration
ImagePolicyWebhook LimitPodHardAntiAffinityTopology NamespaceAutoProvision NamespaceExists NodeRestriction
OwnerReferencesPermissionEnforcement PodNodeSelector PodTolerationRestriction
"""
_OFF_BY_DEFAULT = frozenset(_OFF_BY_DEFAULT_WORDS.split())
_ALWAYS_ON_WORDS = """
ClusterTrustBundleAttest JobValidation NodeDeclaredFeatureValidator PodGroupProtection PodGroupWorkloadExists
"""
_ALWAYS_ON = frozenset(_ALWAYS_ON_WORDS.split())
_HARMLESS = frozenset({"AlwaysAdmit", "NamespaceExists", "NodeRestriction"})
"""Without them nothing is refused that would be allowed with them, but to nodes."""
_MODES = ("RBAC", "Node", "AlwaysAllow", "AlwaysDeny")
_STAGES = ("api/all", "api/ga", "api/beta", "api/alpha", "api/legacy")
_LAST_PORT = 65535
_PROXY_HEADERS = ("username-headers", "uid-headers", "group-headers", "extra-headers-prefix", "allowed-names")


class Command(msgspec.Struct, frozen=True):
    """The parsed command line. notes: flags without effect. problems: errors. One line each."""

    address: str = "127.0.0.1"
    port: int = 6443
    settings: Settings = Settings()
    keys: Keys = Keys()
    certificates: Path | None = None
    """The folder for the serving certificate and key, if they have to be created."""
    gates: tuple[str, ...] = ()
    audit: AuditOptions | None = None
    notes: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()


def read(arguments: Iterable[str]) -> Command:
    """Parse the command line. Errors are in the result."""
    reader = _Reader(flags().parse(list(arguments)))
    try:
        command = reader.command()
    except _Wrong as error:
        return Command(problems=(*reader.problems, str(error)))
    return command


class _Wrong(Exception):
    """A file that cannot be read, or is invalid."""


class _Reader:
    def __init__(self, parsed: Parsed) -> None:
        self._given = parsed.values
        self._defaults = {flag.name: flag.default for flag in DONE}
        self.problems = [*parsed.problems, *(f'unknown command "{word}" for "kube-apiserver"' for word in parsed.rest)]
        self.notes = [f"--{name} has no effect" for name in self._given if name in names_of(WITHOUT_EFFECT)]

    def command(self) -> Command:
        """The command. Raises _Wrong."""
        self._refuse()
        port = self._given.get("secure-port", 6443)
        assert isinstance(port, int)
        if not 1 <= port <= _LAST_PORT:
            self.problems.append(f"--secure-port {port} must be between 1 and {_LAST_PORT}, inclusive")
        keys, folder = self._keys()
        settings = self._settings()
        gates = self._gates()
        audit = self._audit()
        self._apis()
        return Command(
            address=self._text("bind-address"),
            port=port,
            settings=settings,
            keys=keys,
            certificates=folder,
            gates=gates,
            audit=audit,
            notes=tuple(self.notes),
            problems=tuple(self.problems),
        )

    def _refuse(self) -> None:
        for name in self._given:
            if name in REFUSED:
                self.problems.append(f"--{name}: {REFUSED[name]}")
            elif name in names_of(REFUSED_TOO):
                self.problems.append(f"--{name}: {REFUSED['oidc-issuer-url']}")
            elif name in VERSIONS and str(self._given[name]).removeprefix("kube=") != str(BINARY):
                self.problems.append(f"--{name}: the sandbox is {BINARY}")
        if self._given.get("insecure-port", "0") != "0":
            self.problems.append(f"--insecure-port: {REFUSED['insecure-bind-address']}")
        if self._given.get("allow-privileged") is False:
            self.notes.append("--allow-privileged=false has no effect: privileged containers are allowed")
        if not self._texts("etcd-servers"):
            self.problems.append("--etcd-servers must be specified")

    def _keys(self) -> tuple[Keys, Path | None]:
        certificate, key = self._text("tls-cert-file"), self._text("tls-private-key-file")
        if bool(certificate) != bool(key):
            self.problems.append("--tls-cert-file and --tls-private-key-file must be specified together")
        signing = self._text("service-account-signing-key-file")
        signs = self._read("service-account-signing-key-file", signing, private_key) if signing else b""
        if certificate and key:
            pair = self._pair("tls-cert-file", certificate, "tls-private-key-file", key)
            return Keys(pair, signs), None
        folder = self._text("cert-dir")
        if not folder:
            return Keys(None, signs), None
        first, second = Path(folder, "apiserver.crt"), Path(folder, "apiserver.key")
        if not (os.path.exists(first) and os.path.exists(second)):
            return Keys(None, signs), Path(folder)
        return Keys(self._pair("cert-dir", str(first), "cert-dir", str(second)), signs), None

    def _pair(self, flag: str, certificate: str, key_flag: str, key: str) -> KeyPair:
        pair = KeyPair(self._read(flag, certificate, chain), self._read(key_flag, key, pair_key))
        if chain(pair.certificate)[0].public_key() != pair_key(pair.key).public_key():
            raise _Wrong(f"--{key_flag}: {key}: it is not the key of {certificate}")
        return pair

    def _settings(self) -> Settings:
        modes = self._texts("authorization-mode")
        for mode in modes:
            if mode not in _MODES:
                self.problems.append(f"--authorization-mode: {quote(mode)} is not one of {', '.join(_MODES)}")
        if "Node" in modes:
            self.notes.append("--authorization-mode: Node has no effect, nodes have the rights that RBAC gives them")
        ca = self._text("client-ca-file")
        issuers = self._texts("service-account-issuer") or Settings().issuers
        key_files = self._texts("service-account-key-file")
        return Settings(
            tokens=self._tokens(),
            client_cas=self._read("client-ca-file", ca, certificates) if ca else b"",
            proxies=self._proxies(),
            anonymous=self._given.get("anonymous-auth", True) is True and "AlwaysAllow" not in modes,
            authorization=modes,
            issuers=issuers,
            audiences=self._texts("api-audiences"),
            token_keys=tuple(self._read("service-account-key-file", path, TrustedKey.all_of) for path in key_files),
            disabled_plugins=self._disabled(),
            service_ranges=self._ranges(),
            deletion_gap_s=DELETION_GAP_S,
            version=version if (version := self._text("version")).startswith("v") else GIT_VERSION,
        )

    def _proxies(self) -> Proxies | None:
        """The authenticating proxies. Raises _Wrong."""
        given = {name: self._texts(f"requestheader-{name}") for name in _PROXY_HEADERS}
        for name, words in given.items():
            if not all(word.strip() for word in words):
                self.problems.append(f"empty value in {quote(f'requestheader-{name}')}")
        uids = given["uid-headers"]
        if uids and not any(word.lower() == "x-remote-uid" for word in uids):
            self.problems.append(
                "--requestheader-uid-headers is set without specifying the standard X-Remote-Uid header - "
                "API aggregation will not work"
            )
        flag = "requestheader-client-ca-file"
        path = self._text(flag)
        if not path:
            return None
        return Proxies(self._read(flag, path, certificates), ProxyHeaders(*given.values()))

    def _tokens(self) -> Mapping[str, User]:
        path = self._text("token-auth-file")
        if not path:
            return {}
        found: dict[str, User] = {}
        text = self._file("token-auth-file", path).decode("utf-8", "replace")
        for number, row in enumerate(csv.reader(io.StringIO(text), skipinitialspace=True), 1):
            if not row or row[0].startswith("#"):
                continue
            if len(row) < 3:
                raise _Wrong(f"--token-auth-file: line {number} of {path} needs token, user name and user uid")
            token, name, uid, *rest = row
            if token:
                groups = tuple(group.strip() for group in rest[0].split(",")) if rest and rest[0] else ()
                found[token] = User(name, uid, groups)
        return found

    def _disabled(self) -> frozenset[str]:
        enabled, disabled = self._texts("enable-admission-plugins"), self._texts("disable-admission-plugins")
        for flag, names in (("enable", enabled), ("disable", disabled)):
            for name in names:
                if name not in PLUGINS | _OFF_BY_DEFAULT | _ALWAYS_ON:
                    self.problems.append(f"--{flag}-admission-plugins plugin {quote(name)} is unknown")
        for name in enabled:
            if name in disabled:
                self.problems.append(f"{name} in enable-admission-plugins and disable-admission-plugins overlapped")
            elif name in _HARMLESS:
                self.notes.append(f"--enable-admission-plugins: {name} has no effect")
            elif name in _OFF_BY_DEFAULT:
                self.problems.append(f"--enable-admission-plugins: the sandbox has no {name}")
        for name in disabled:
            if name in _ALWAYS_ON:
                self.notes.append(f"--disable-admission-plugins: {name} cannot be turned off")
        return PLUGINS.intersection(disabled)

    def _ranges(self) -> tuple[str, ...]:
        try:
            return service_ranges(self._text("service-cluster-ip-range"))
        except ValueError as error:
            raise _Wrong(f"--service-cluster-ip-range: {error}") from None

    def _gates(self) -> tuple[str, ...]:
        pairs = self._given.get("feature-gates", ())
        assert isinstance(pairs, tuple)
        found = resolve(pairs)
        self.problems += found.problems
        names = {setting.partition("=")[0].strip() for _, setting in pairs} & set(found.gates)
        for name in sorted(names):
            if found.gates[name].enabled != found.gates[name].default:
                self.notes.append(
                    f"--feature-gates: {name} is passed to the controllers; the API server keeps its default"
                )
        return tuple(f"{component}:{setting}" if component else setting for component, setting in pairs)

    def _audit(self) -> AuditOptions | None:
        """The audit log; as upstream, none without a policy."""
        path, file = self._text("audit-log-path"), self._text("audit-policy-file")
        if not path:
            return None
        if not file:
            self.notes.append("--audit-log-path has no effect without --audit-policy-file")
            return None
        try:
            policy = policy_of(load(self._file("audit-policy-file", file)))
        except (ValueError, yaml.YAMLError) as error:
            raise _Wrong(f"--audit-policy-file: {file}: {error}") from None
        megabytes = self._given.get("audit-log-maxsize") or self._defaults["audit-log-maxsize"]
        assert isinstance(megabytes, int)
        if megabytes < 0:
            self.problems.append(f"--audit-log-maxsize {megabytes} can't be a negative number")
        return AuditOptions(path, policy, megabytes << 20)

    def _apis(self) -> None:
        served = built_in_versions()
        pairs = self._given.get("runtime-config", ())
        assert isinstance(pairs, tuple)
        for name, value in pairs:
            try:
                wanted = parse_bool(value) if value else True
            except ValueError as error:
                self.problems.append(f"--runtime-config: {name}={value}: {error}")
                continue
            if name in _STAGES:
                if wanted != (name in ("api/ga", "api/all")):
                    self.notes.append(f"--runtime-config: {name}={value} has no effect")
            elif (name.removeprefix("api/") in served) != wanted:
                why = "is not served" if wanted else "cannot be turned off"
                self.problems.append(f"--runtime-config: {name} {why} by the sandbox")

    def _text(self, name: str) -> str:
        return str(self._given.get(name, self._defaults[name]))

    def _texts(self, name: str) -> tuple[str, ...]:
        value = self._given.get(name, self._defaults[name]) or ()
        assert isinstance(value, tuple)
        return value

    def _read(self, flag: str, path: str, parse: Callable[[bytes], object]) -> bytes:
        """A file that can be parsed. Raises _Wrong."""
        content = self._file(flag, path)
        try:
            parse(content)
        except ValueError as error:
            raise _Wrong(f"--{flag}: {path}: {error}") from None
        return content

    def _file(self, flag: str, path: str) -> bytes:
        try:
            return Path(path).read_bytes()
        except OSError as error:
            raise _Wrong(f"--{flag}: cannot read {path}: {error.strerror}") from None
