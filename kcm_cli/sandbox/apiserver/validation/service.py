"""Services.

Source: pkg/apis/core/validation/validation.go#validateService; pkg/api/service/warnings.go.
"""

from kcm_cli.sandbox.apiserver.types import Tree


def needs_health_check(spec: Tree) -> bool:
    """Whether a load balancer asks nodes for their health on a port of its own."""
    return spec.get("type") == "LoadBalancer" and spec.get("externalTrafficPolicy") == "Local"
