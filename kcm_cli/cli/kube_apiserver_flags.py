"""The flags of the sandbox's kube-apiserver: supported ones, those without effect, and rejected ones.

``options`` parses them. This module is fast to import, since envtest requests --help before each start.

upstream: cmd/kube-apiserver/app/options, pkg/kubeapiserver/options, pkg/controlplane/apiserver/options (v1.36)
"""

from collections.abc import Iterator

from kcm_cli.component.flagset import Flag, FlagSet
from kcm_cli.component.value_types import BOOL, INT, IP, MULTIMAP, STRING, STRINGS, SWITCHES, VERSION, ValueType
from kcm_cli.sandbox.networks import SERVICE_RANGE

ABOUT = """kube-apiserver of kcm's sandbox serves the Kubernetes API, with simulated nodes, a scheduler and the
controllers behind it. The sandbox's own flags are in KCM_SANDBOX_FLAGS; kcm sandbox assets --help lists them.

Usage:
  kube-apiserver [flags]"""
DONE = (
    Flag("bind-address", IP, "127.0.0.1", "Address to listen on.", "Served"),
    Flag("secure-port", INT, 6443, "Port for HTTPS.", "Served"),
    Flag(
        "cert-dir",
        STRING,
        "",
        "Directory of apiserver.crt and apiserver.key, which are created if they do not exist.",
        "Served",
    ),
    Flag("tls-cert-file", STRING, "", "Serving certificate.", "Served"),
    Flag("tls-private-key-file", STRING, "", "Private key of the serving certificate.", "Served"),
    Flag("client-ca-file", STRING, "", "CA bundle that verifies client certificates.", "Served"),
    Flag(
        "requestheader-client-ca-file",
        STRING,
        "",
        "CA bundle of authenticating proxies, which name users in headers.",
        "Served",
    ),
    Flag("requestheader-username-headers", STRINGS, (), "Headers with the name of the user.", "Served"),
    Flag("requestheader-uid-headers", STRINGS, (), "Headers with the uid of the user.", "Served"),
    Flag("requestheader-group-headers", STRINGS, (), "Headers with the groups of the user.", "Served"),
    Flag("requestheader-extra-headers-prefix", STRINGS, (), "Prefixes of headers with more of the user.", "Served"),
    Flag("requestheader-allowed-names", STRINGS, (), "Common names of the proxies; by default any name.", "Served"),
    Flag("token-auth-file", STRING, "", 'Static tokens: lines of token,user,uid,"group1,group2".', "Served"),
    Flag("anonymous-auth", BOOL, True, "Treat requests without credentials as those of system:anonymous.", "Served"),
    Flag(
        "authorization-mode", STRINGS, ("RBAC",), "Authorization modes: RBAC, Node, AlwaysAllow, AlwaysDeny.", "Served"
    ),
    Flag("service-account-issuer", STRING, "", "Issuer of service account tokens. May be repeated.", "Served"),
    Flag(
        "service-account-key-file", STRING, "", "Key that verifies service account tokens. May be repeated.", "Served"
    ),
    Flag("service-account-signing-key-file", STRING, "", "Key that signs service account tokens.", "Served"),
    Flag("api-audiences", STRINGS, (), "Audiences of service account tokens.", "Served"),
    Flag("service-cluster-ip-range", STRING, SERVICE_RANGE, "CIDRs of Service addresses.", "Served"),
    Flag("disable-admission-plugins", STRINGS, (), "Admission plugins to disable.", "Served"),
    Flag("enable-admission-plugins", STRINGS, (), "Accepted for plugins that are enabled by default.", "Served"),
    Flag(
        "runtime-config",
        SWITCHES,
        (),
        "API versions to serve, as group/version=true|false; without a value true.",
        "Served",
    ),
    Flag(
        "feature-gates", MULTIMAP, (), "Feature gates of the controllers. Those of the server do not change.", "Served"
    ),
    Flag(
        "audit-log-path",
        STRING,
        "",
        "File to append the audit log to; - for standard output. Needs --audit-policy-file.",
        "Served",
    ),
    Flag("audit-policy-file", STRING, "", "Audit policy (audit.k8s.io/v1).", "Served"),
    Flag("audit-log-maxsize", INT, 100, "Megabytes after which the audit log is renamed to FILE.1.", "Served"),
    Flag("etcd-servers", STRINGS, (), "Required, but no connection is made.", "Served"),
    Flag(
        "version",
        VERSION,
        "false",
        "true or raw: print the version and exit. vX.Y.Z with a suffix: report this one.",
        "Served",
    ),
    Flag("help", BOOL, False, "Show this help.", "Served", shorthand="h"),
)
_TUNING = """
advertise-address allow-privileged:b audit-log-batch-buffer-size audit-log-batch-max-size audit-log-batch-max-wait
audit-log-batch-throttle-burst audit-log-batch-throttle-enable:b audit-log-batch-throttle-qps audit-log-compress:b
audit-log-format audit-log-maxage audit-log-maxbackup audit-log-mode audit-log-truncate-enabled:b
audit-log-truncate-max-batch-size audit-log-truncate-max-event-size audit-log-version audit-webhook-batch-buffer-size
audit-webhook-batch-max-size audit-webhook-batch-max-wait audit-webhook-batch-throttle-burst
audit-webhook-batch-throttle-enable:b audit-webhook-batch-throttle-qps audit-webhook-initial-backoff
audit-webhook-mode audit-webhook-truncate-enabled:b audit-webhook-truncate-max-batch-size
audit-webhook-truncate-max-event-size audit-webhook-version authentication-token-webhook-cache-ttl
authentication-token-webhook-version authorization-webhook-cache-authorized-ttl
authorization-webhook-cache-unauthorized-ttl authorization-webhook-version contention-profiling:b
coordinated-leadership-lease-duration coordinated-leadership-renew-deadline coordinated-leadership-retry-period
delete-collection-workers disable-http2-serving:b disabled-metrics enable-aggregator-routing:b
enable-garbage-collector:b enable-logs-handler:b enable-priority-and-fairness:b
encryption-provider-config-automatic-reload:b endpoint-reconciler-type etcd-cafile etcd-certfile
etcd-compaction-interval etcd-count-metric-poll-period etcd-db-metric-poll-interval etcd-healthcheck-timeout
etcd-keyfile etcd-prefix etcd-readycheck-timeout etcd-servers-overrides external-hostname goaway-chance
http2-max-streams-per-connection kubelet-certificate-authority kubelet-client-certificate kubelet-client-key
kubelet-preferred-address-types kubelet-timeout lease-reuse-duration-seconds livez-grace-period log-flush-frequency
log-json-info-buffer-size log-json-split-stream:b log-text-info-buffer-size log-text-split-stream:b logging-format
logtostderr:b max-connection-bytes-per-sec max-mutating-requests-inflight max-requests-inflight min-request-timeout
aggregator-reject-forwarding-redirect:b peer-advertise-ip peer-advertise-port peer-ca-file permit-address-sharing:b
permit-port-sharing:b profiling:b proxy-client-cert-file proxy-client-key-file request-timeout
send-retry-after-while-not-ready-once:b service-account-extend-token-expiration:b service-account-lookup:b
shutdown-delay-duration shutdown-send-retry-after:b shutdown-watch-termination-grace-period storage-backend
storage-initialization-timeout storage-media-type strict-transport-security-directives tls-cipher-suites
tls-curve-preferences tls-min-version v vmodule watch-cache:b watch-cache-sizes allow-metric-labels
allow-metric-labels-manifest show-hidden-metrics-for-version default-watch-cache-size
emulation-forward-compatible:b runtime-config-emulation-forward-compatible:b
"""
"""About etcd, caches, queues, logs and other servers: the sandbox has none of them, or clients see no difference."""
WITHOUT_EFFECT = """
audit-webhook-config-file cors-allowed-origins debug-socket-path
default-not-ready-toleration-seconds default-unreachable-toleration-seconds enable-bootstrap-token-auth:b
encryption-provider-config event-ttl kubernetes-service-node-port service-account-jwks-uri
service-account-max-token-expiration service-node-port-range tls-sni-cert-key tracing-config-file
"""
"""Flags without effect that a user might expect to have one. Each one that is used is reported on standard error."""
REFUSED = {
    "admission-control": "use --enable-admission-plugins and --disable-admission-plugins",
    "admission-control-config-file": "the sandbox has no configuration of admission plugins",
    "authentication-config": "the sandbox supports client certificates, service account tokens and --token-auth-file",
    "authentication-token-webhook-config-file": "the sandbox supports no token webhooks; use --token-auth-file",
    "authorization-config": "use --authorization-mode",
    "authorization-policy-file": "the sandbox does not support ABAC; use RBAC",
    "authorization-webhook-config-file": "the sandbox does not support the mode Webhook; use RBAC",
    "egress-selector-config-file": "the sandbox connects through no proxy",
    "insecure-bind-address": "Kubernetes serves no plain HTTP since 1.24",
    "oidc-issuer-url": "the sandbox does not support OIDC; use --token-auth-file",
    "service-account-signing-endpoint": "use --service-account-signing-key-file",
}
REFUSED_TOO = """oidc-ca-file oidc-client-id oidc-groups-claim oidc-groups-prefix oidc-required-claim
oidc-signing-algs oidc-username-claim oidc-username-prefix"""
VERSIONS = ("emulated-version", "min-compatibility-version")
_REPEATED = ("service-account-issuer", "service-account-key-file")


def flags() -> FlagSet:
    """All known flags of kube-apiserver, supported ones first."""
    found = [*(_repeatable(flag) for flag in DONE), *_named(_TUNING, "Without a difference")]
    found += [*_named(WITHOUT_EFFECT, "Without effect"), *_named(" ".join(VERSIONS), "Without effect")]
    return FlagSet([*found, *_named(" ".join(["insecure-port", *REFUSED, REFUSED_TOO]), "")])


def _repeatable(flag: Flag) -> Flag:
    if flag.name not in _REPEATED:
        return flag
    return Flag(flag.name, _REPEATABLE, (), flag.help, flag.section)


def _once(text: str) -> tuple[str, ...]:
    return (text,)


_REPEATABLE = ValueType("stringArray", _once, STRINGS.show, list, STRINGS.from_doc, join=STRINGS.join, zero=())


def names_of(words: str) -> list[str]:
    return [word.partition(":")[0] for word in words.split()]


def _named(words: str, section: str) -> Iterator[Flag]:
    """Flags of which only the name matters. ``:b`` marks booleans."""
    for word in words.split():
        name, _, kind = word.partition(":")
        letter = "v" if name == "v" else ""
        yield Flag(name, BOOL if kind == "b" else STRING, "", "", section, shorthand=letter, hidden=not section)
