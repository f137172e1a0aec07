"""Quantities in resource lists: canonical, and rounded up to thousandths.

upstream: pkg/apis/core/v1/defaults.go#SetDefaults_ResourceList; apimachinery pkg/api/resource
"""

from kcm_cli.machinery import quantity
from kcm_cli.machinery.remembered import remembered_all
from kcm_cli.sandbox.apiserver.types import Tree


@remembered_all(4096)
def milli(value: str | int | float) -> str:
    """The canonical text of a quantity, rounded up to thousandths."""
    return str(quantity.from_json(value).rounded(-3))


@remembered_all(4096)
def canonical(value: str | int | float | None) -> str:
    """The canonical text of a quantity; None is zero."""
    return str(quantity.from_json(value))


def resource_list(amounts: Tree | None) -> None:
    """Convert the quantities of a resource list, in place."""
    if not amounts:
        return
    for name, value in amounts.items():
        amounts[name] = milli(value)


def limits_and_requests(resources: Tree | None) -> None:
    """Convert the quantities of limits and requests, in place."""
    if resources:
        resource_list(resources.get("limits"))
        resource_list(resources.get("requests"))


def requirements(container: Tree) -> None:
    """Default ``resources`` of a container or a claim, which upstream writes even if it is not set."""
    resources = container.get("resources")
    if resources is None:
        container["resources"] = {}
    else:
        limits_and_requests(resources)
