"""All options of the manager as a tree, and their flags.

``ComponentConfig`` is the configuration file and /configz (KubeControllerManagerConfiguration v1alpha1); ``Options``
adds the options that have flags only. A controller's options come from its descriptor.

upstream: cmd/kube-controller-manager/app/options, staging/src/k8s.io/kube-controller-manager/config/v1alpha1
"""

from collections.abc import Iterable
from dataclasses import dataclass, make_dataclass
from functools import cache
from typing import Any, ClassVar

from kcm_cli.component.flagset import Flag, FlagSet, Parsed
from kcm_cli.component.option_flags import flags_of
from kcm_cli.component.options import Binding, Group, bind, group, layout, lazy_group
from kcm_cli.engine.descriptor import Descriptor
from kcm_cli.manager.controller_map import all_controllers
from kcm_cli.manager.generic_options import PROCESS_FLAGS, FlagOptions, GenericComponentConfig

SECTIONS = (
    "Debugging",
    "Leader-migration",
    "Generic",
    "Service-lb-controller",
    "Secure serving",
    "Authentication",
    "Authorization",
    "Persistentvolume-attach-detach-controller",
    "Certificatesigningrequest-signing-controller",
    "Deployment-controller",
    "Device-taint-eviction-controller",
    "Resourceclaim-controller",
    "Statefulset-controller",
    "Daemonset-controller",
    "Endpoints-controller",
    "Endpointslice-controller",
    "Endpointslice-mirroring-controller",
    "Ephemeral-volume-controller",
    "Garbage-collector-controller",
    "Horizontal-pod-autoscaler-controller",
    "Job-controller",
    "Cronjob-controller",
    "Legacy-serviceaccount-token-cleaner-controller",
    "Namespace-controller",
    "Node-ipam-controller",
    "Node-lifecycle-controller",
    "Persistentvolume-binder-controller",
    "Pod-garbage-collector-controller",
    "Replicaset-controller",
    "Replicationcontroller-controller",
    "Resourcequota-controller",
    "Serviceaccount-controller",
    "Ttl-after-finished-controller",
    "Validatingadmissionpolicy-status-controller",
    "Metrics",
    "Logs",
    "Misc",
    "Kcm",
    "Global",
)
"""The sections of the help, in upstream's order; within a section flags stand by name. Those of controllers that
are not named here stand before ``Metrics``."""


@cache
def controller_options() -> type[Group]:
    """A group with the options of each controller, in a field with the name of its folder."""
    return _grouped(all_controllers())


def _grouped(descriptors: Iterable[Descriptor]) -> type[Group]:
    fields = [
        (one.folder, type_, group(type_, key=one.config_key, section=one.section))
        for one in descriptors
        if (type_ := one.options) is not None
    ]
    return make_dataclass("ControllerOptions", fields, frozen=True, slots=True)


@dataclass(frozen=True)
class ComponentConfig(GenericComponentConfig):
    """KubeControllerManagerConfiguration. ``controllers``: a group for each controller, with the name of its folder.

    ORDER: the fields of the file in upstream's order; those of other controllers follow.
    """

    ORDER: ClassVar[tuple[str, ...]] = (
        "Generic",
        "KubeCloudShared",
        "AttachDetachController",
        "CSRSigningController",
        "DaemonSetController",
        "DeploymentController",
        "StatefulSetController",
        "DeprecatedController",
        "EndpointController",
        "EndpointSliceController",
        "EndpointSliceMirroringController",
        "EphemeralVolumeController",
        "GarbageCollectorController",
        "HPAController",
        "JobController",
        "CronJobController",
        "LegacySATokenCleaner",
        "NamespaceController",
        "NodeIPAMController",
        "NodeLifecycleController",
        "PersistentVolumeBinderController",
        "PodGCController",
        "ReplicaSetController",
        "ReplicationController",
        "ResourceQuotaController",
        "SAController",
        "ServiceController",
        "TTLAfterFinishedController",
        "ValidatingAdmissionPolicyStatusController",
        "DeviceTaintEvictionController",
        "ResourceClaimController",
    )

    controllers: Any = lazy_group(controller_options)


@dataclass(frozen=True)
class Options(FlagOptions):
    """All options."""

    component: ComponentConfig = group(ComponentConfig)


@cache
def bindings() -> tuple[Binding, ...]:
    """All options with their paths."""
    return bind(Options)


@cache
def flag_set() -> FlagSet:
    """All flags of the manager, by section and name."""
    return FlagSet(sorted((*flags_of(Options), *PROCESS_FLAGS), key=_place))


def _place(flag: Flag) -> tuple[int, str, str]:
    known = flag.section in SECTIONS
    return SECTIONS.index(flag.section if known else "Metrics") * 2 - (not known), flag.section, flag.name


def flags_beside_file(parsed: Parsed) -> list[str]:
    """The given flags, sorted, that no field of the configuration file can take the place of."""
    in_file = {binding.option.flag for _, binding in layout(ComponentConfig) if binding is not None}
    return sorted(parsed.values.keys() - in_file - {flag.name for flag in PROCESS_FLAGS})
