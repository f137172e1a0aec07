"""Views of the apiextensions.k8s.io group."""

from kcm_cli.api.core import Condition
from kcm_cli.api.resource import GVR, Resource
from kcm_cli.machinery.meta import Object, View


class CustomResourceDefinitionVersion(View, frozen=True, gc=False):
    name: str = ""
    storage: bool = False


class CustomResourceDefinitionSpec(View, frozen=True, gc=False):
    versions: tuple[CustomResourceDefinitionVersion, ...] = ()


class CustomResourceDefinitionStatus(View, frozen=True, gc=False):
    conditions: tuple[Condition, ...] = ()


class CustomResourceDefinition(Object, frozen=True, gc=False, kw_only=True):
    spec: CustomResourceDefinitionSpec = CustomResourceDefinitionSpec()
    status: CustomResourceDefinitionStatus = CustomResourceDefinitionStatus()


CUSTOM_RESOURCE_DEFINITIONS = Resource(
    GVR("apiextensions.k8s.io", "v1", "customresourcedefinitions"),
    "CustomResourceDefinition",
    CustomResourceDefinition,
    namespaced=False,
)
