"""maxSurge and maxUnavailable of rollouts, in pods.

upstream: pkg/controller/deployment/util/deployment_util.go#ResolveFenceposts,
pkg/controller/daemon/util/daemonset_util.go, pkg/controller/statefulset/stateful_set_utils.go
"""

from kcm_cli.machinery.intstr import IntOrString, scaled_value


def fenceposts(max_surge: IntOrString | None, max_unavailable: IntOrString | None, desired: int) -> tuple[int, int]:
    """(surge, unavailable) in pods for a Deployment; absent is 0.

    Surge is rounded up and unavailable down. If both are 0, one pod may be unavailable, since a surge might exceed a
    quota. Raises FormatError for a text that is not a percentage.
    """
    surge = scaled_value(0 if max_surge is None else max_surge, desired, round_up=True)
    unavailable = scaled_value(0 if max_unavailable is None else max_unavailable, desired, round_up=False)
    return (surge, unavailable) if surge or unavailable else (0, 1)


def rounded_up(value: IntOrString | None, desired: int) -> int:
    """A DaemonSet's maxSurge or maxUnavailable in pods; absent is 0. Raises FormatError."""
    return 0 if value is None else scaled_value(value, desired, round_up=True)


def at_least_one(max_unavailable: IntOrString | None, replicas: int) -> int:
    """A StatefulSet's maxUnavailable in pods, rounded down, but at least 1; absent is 1.

    Raises FormatError.
    """
    return 1 if max_unavailable is None else max(1, scaled_value(max_unavailable, replicas, round_up=False))
