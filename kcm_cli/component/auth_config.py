"""Options of authentication and authorization of the secure port's clients."""

from collections.abc import Iterator
from typing import ClassVar

from kcm_cli.component.options import OptionGroup, duration, option
from kcm_cli.component.value_types import BOOL, STRING, STRINGS


class AuthenticationConfig(OptionGroup):
    """Authentication of the secure port's clients."""

    SECTION: ClassVar[str] = "Authentication"

    kubeconfig: str = option(
        STRING,
        "",
        flag="authentication-kubeconfig",
        help=(
            "kubeconfig of a user that may create tokenreviews.authentication.k8s.io. Without it, "
            "requests with a token are anonymous, and the cluster's client CA is not looked up."
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
        help="How long to cache the result of a token review.",
    )
    tolerate_lookup_failure: bool = option(
        BOOL,
        False,
        flag="authentication-tolerate-lookup-failure",
        help=(
            "Start even if the authentication configuration in the cluster cannot be read. Some "
            "requests may then be treated as anonymous."
        ),
    )
    client_ca_file: str = option(
        STRING,
        "",
        flag="client-ca-file",
        help=(
            "CA bundle for client certificates. The common name of a certificate that it verifies is "
            "the name of the user."
        ),
    )
    requestheader_client_ca_file: str = option(
        STRING,
        "",
        flag="requestheader-client-ca-file",
        help=("CA bundle for the client certificates of authenticating proxies, whose user headers are trusted."),
    )
    requestheader_allowed_names: tuple[str, ...] = option(
        STRINGS,
        (),
        flag="requestheader-allowed-names",
        help=(
            "Common names of the proxies to trust. If empty, any certificate that "
            "--requestheader-client-ca-file verifies is trusted."
        ),
    )
    requestheader_username_headers: tuple[str, ...] = option(
        STRINGS, ("x-remote-user",), flag="requestheader-username-headers", help="Headers with the name of the user."
    )
    requestheader_uid_headers: tuple[str, ...] = option(
        STRINGS,
        (),
        flag="requestheader-uid-headers",
        help=("Headers with the user's UID, usually X-Remote-Uid. Needs the feature gate RemoteRequestHeaderUID."),
    )
    requestheader_group_headers: tuple[str, ...] = option(
        STRINGS, ("x-remote-group",), flag="requestheader-group-headers", help="Headers with the user's groups."
    )
    requestheader_extra_headers_prefix: tuple[str, ...] = option(
        STRINGS,
        ("x-remote-extra-",),
        flag="requestheader-extra-headers-prefix",
        help="Prefixes of headers with other attributes of the user, usually X-Remote-Extra-.",
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


class AuthorizationConfig(OptionGroup):
    """Authorization of the secure port's clients."""

    SECTION: ClassVar[str] = "Authorization"

    kubeconfig: str = option(
        STRING,
        "",
        flag="authorization-kubeconfig",
        help=(
            "kubeconfig of a user that may create subjectaccessreviews.authorization.k8s.io. Without "
            "it, only the paths of --authorization-always-allow-paths are served."
        ),
    )
    authorized_cache_ttl_s: float = duration(
        10.0,
        flag="authorization-webhook-cache-authorized-ttl",
        help="How long to cache an authorizer's result that allows a request.",
    )
    unauthorized_cache_ttl_s: float = duration(
        10.0,
        flag="authorization-webhook-cache-unauthorized-ttl",
        help="How long to cache an authorizer's result that denies a request.",
    )
    always_allow_paths: tuple[str, ...] = option(
        STRINGS,
        ("/healthz", "/readyz", "/livez"),
        flag="authorization-always-allow-paths",
        help="Paths that need no authorization. A trailing * matches any suffix.",
    )

    def problems(self) -> Iterator[str]:
        for path in self.always_allow_paths:
            if "*" in path[:-1]:
                yield f'authorization-always-allow-paths: only trailing * allowed in "{path}"'
