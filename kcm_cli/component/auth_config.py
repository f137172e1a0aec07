"""Options of authentication and authorization of the secure port's clients."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from kcm_cli.component.kinds import BOOL, STRING, STRINGS
from kcm_cli.component.options import duration, option


@dataclass(frozen=True, slots=True)
class AuthenticationConfig:
    """Authentication of the secure port's clients."""

    SECTION: ClassVar[str] = "Authentication"

    kubeconfig: str = option(
        STRING,
        "",
        flag="authentication-kubeconfig",
        help=(
            "kubeconfig whose user may create tokenreviews.authentication.k8s.io. Without it every token is taken for "
            "anonymous, and no client CA is looked up in the cluster."
        ),
    )
    skip_lookup: bool = option(
        BOOL,
        False,
        flag="authentication-skip-lookup",
        help="Do not look up in the cluster what is not configured here, such as the client CA.",
    )
    token_cache_ttl_s: float = duration(
        10.0,
        flag="authentication-token-webhook-cache-ttl",
        help="How long the answer to a token review is kept.",
    )
    tolerate_lookup_failure: bool = option(
        BOOL,
        False,
        flag="authentication-tolerate-lookup-failure",
        help="Start even when the configuration in the cluster cannot be read; some requests then count as anonymous.",
    )
    client_ca_file: str = option(
        STRING,
        "",
        flag="client-ca-file",
        help="CA bundle: a client with a certificate of one of these is the user that its common name says.",
    )
    requestheader_client_ca_file: str = option(
        STRING,
        "",
        flag="requestheader-client-ca-file",
        help="CA bundle of proxies whose user headers are believed. Such headers carry no authorization by themselves.",
    )
    requestheader_allowed_names: tuple[str, ...] = option(
        STRINGS,
        (),
        flag="requestheader-allowed-names",
        help="Common names of the proxies believed; empty for every certificate of --requestheader-client-ca-file.",
    )
    requestheader_username_headers: tuple[str, ...] = option(
        STRINGS, ("x-remote-user",), flag="requestheader-username-headers", help="Headers that name the user."
    )
    requestheader_uid_headers: tuple[str, ...] = option(
        STRINGS,
        (),
        flag="requestheader-uid-headers",
        help="Headers that carry the user's uid; X-Remote-Uid is usual. Needs the feature gate RemoteRequestHeaderUID.",
    )
    requestheader_group_headers: tuple[str, ...] = option(
        STRINGS, ("x-remote-group",), flag="requestheader-group-headers", help="Headers that name the user's groups."
    )
    requestheader_extra_headers_prefix: tuple[str, ...] = option(
        STRINGS,
        ("x-remote-extra-",),
        flag="requestheader-extra-headers-prefix",
        help="Prefixes of headers with further facts about the user; X-Remote-Extra- is usual.",
    )

    def problems(self) -> Iterator[str]:
        for name, texts in (
            ("requestheader-username-headers", self.requestheader_username_headers),
            ("requestheader-uid-headers", self.requestheader_uid_headers),
            ("requestheader-group-headers", self.requestheader_group_headers),
            ("requestheader-extra-headers-prefix", self.requestheader_extra_headers_prefix),
            ("requestheader-allowed-names", self.requestheader_allowed_names),
        ):
            if any(not text.strip() for text in texts):
                yield f"{name} must not hold an empty value"
        uids = {name.lower() for name in self.requestheader_uid_headers}
        if uids and "x-remote-uid" not in uids:
            yield "requestheader-uid-headers must hold X-Remote-Uid, which API servers that aggregate others send"


@dataclass(frozen=True, slots=True)
class AuthorizationConfig:
    """Authorization of the secure port's clients."""

    SECTION: ClassVar[str] = "Authorization"

    kubeconfig: str = option(
        STRING,
        "",
        flag="authorization-kubeconfig",
        help=(
            "kubeconfig whose user may create subjectaccessreviews.authorization.k8s.io. Without it every request to a "
            "path that is not always allowed is forbidden."
        ),
    )
    authorized_cache_ttl_s: float = duration(
        10.0,
        flag="authorization-webhook-cache-authorized-ttl",
        help="How long an allowing answer is kept.",
    )
    unauthorized_cache_ttl_s: float = duration(
        10.0,
        flag="authorization-webhook-cache-unauthorized-ttl",
        help="How long a refusing answer is kept.",
    )
    always_allow_paths: tuple[str, ...] = option(
        STRINGS,
        ("/healthz", "/readyz", "/livez"),
        flag="authorization-always-allow-paths",
        help="Paths that need no authorization; a trailing * stands for everything that begins so.",
    )

    def problems(self) -> Iterator[str]:
        for path in self.always_allow_paths:
            if "*" in path[:-1]:
                yield f'authorization-always-allow-paths: only trailing * allowed in "{path}"'
