"""Flags of earlier releases that unit files still carry: accepted, not shown, and answered with a warning.

None of them has an effect any more, but for those in ``RENAMED``.
"""

from collections.abc import Iterator

from kcm_cli.component.flagset import Flag
from kcm_cli.component.kinds import BOOL, DURATION, FLOAT32, INT, INT32, STRING, STRINGS, Kind

RENAMED = {"experimental-cluster-signing-duration": "cluster-signing-duration"}
"""Former name of a flag, and the one it goes by now. The present name goes before."""

_WITHOUT_EFFECT: tuple[tuple[str, Kind, str], ...] = (
    ("add-dir-header", BOOL, "log lines name the file alone."),
    ("alsologtostderr", BOOL, "logs go to stderr."),
    ("azure-container-registry-config", STRING, "built-in cloud providers are gone."),
    ("cloud-provider-gce-l7lb-src-cidrs", STRING, "built-in cloud providers are gone."),
    ("cloud-provider-gce-lb-src-cidrs", STRING, "built-in cloud providers are gone."),
    ("deleting-pods-burst", INT32, "pods are evicted by taints."),
    ("deleting-pods-qps", FLOAT32, "pods are evicted by taints."),
    ("deployment-controller-sync-period", DURATION, "Deployments are looked at again by --min-resync-period."),
    ("enable-taint-manager", BOOL, "pods are always evicted by taints."),
    ("experimental-logging-sanitization", BOOL, "nothing secret is logged."),
    (
        "horizontal-pod-autoscaler-downscale-delay",
        DURATION,
        "use --horizontal-pod-autoscaler-downscale-stabilization.",
    ),
    ("horizontal-pod-autoscaler-upscale-delay", DURATION, "scaling up is no longer delayed."),
    ("horizontal-pod-autoscaler-use-rest-clients", BOOL, "metrics always come from the metrics APIs."),
    ("insecure-experimental-approve-all-kubelet-csrs-for-group", STRING, "requests are approved by RBAC."),
    ("log-backtrace-at", STRING, "log lines carry no backtraces."),
    ("log-dir", STRING, "logs go to stderr."),
    ("log-file", STRING, "logs go to stderr."),
    ("log-file-max-size", INT, "logs go to stderr."),
    ("logtostderr", BOOL, "logs always go to stderr."),
    ("one-output", BOOL, "logs go to stderr."),
    ("pod-eviction-timeout", DURATION, "pods are evicted by taints, after their tolerationSeconds."),
    ("register-retry-count", INT32, "nodes are not registered here."),
    ("skip-headers", BOOL, "log lines always have their header."),
    ("skip-log-headers", BOOL, "logs go to stderr."),
    ("stderrthreshold", STRING, "all log lines go to stderr."),
    ("volume-host-allow-local-loopback", BOOL, "the volume plugins that it was for are gone."),
    ("volume-host-cidr-denylist", STRINGS, "the volume plugins that it was for are gone."),
)


def _former() -> Iterator[Flag]:
    for name, kind, why in _WITHOUT_EFFECT:
        text = f"it no longer does anything: {why}"
        yield Flag(name, kind, kind.zero, section="Misc", hidden=True, deprecated=text)
    for name, present in RENAMED.items():
        yield Flag(name, DURATION, 0.0, section="Misc", hidden=True, deprecated=f"use --{present}.")


FORMER = tuple(_former())
