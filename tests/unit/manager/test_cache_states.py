import random

from kcm_cli.api.core import PODS
from kcm_cli.api.resource import GVR, Resource
from kcm_cli.component.clock import LoopClock
from kcm_cli.machinery.meta import PartialObject
from kcm_cli.manager.controllers import cache_states
from kcm_cli.runtime.informers import Informers


def test_caches_have_the_names_of_client_go() -> None:
    informers = Informers(None, LoopClock(), random.Random(1))  # type: ignore[arg-type]  # nothing is asked for
    informers.get(PODS)
    for gvr, kind in (
        (GVR("networking.k8s.io", "v1", "ingresses"), "Ingress"),
        (GVR("gateway.networking.k8s.io", "v1", "gateways"), "Gateway"),
        (GVR("apiextensions.k8s.io", "v1", "customresourcedefinitions"), "CustomResourceDefinition"),
    ):
        informers.metadata(Resource(gvr, kind, PartialObject))
    shown = [(state.group, state.version, state.resource) for state in cache_states(informers)]
    assert shown == [("", "v1", "pods"), ("networking.k8s.io", "v1", "ingresss")]
