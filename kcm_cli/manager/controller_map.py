"""The controllers of this manager, in upstream's order of registration.

The folder ``kcm_cli.controllers.NAME`` has a controller's ``DESCRIPTOR``. Its code, in ``controller``, is imported only
when the controller starts. Other packages add controllers with the entry point group ``kcm.controllers``: each entry
point is a Descriptor whose ``module`` has the CONTROLLER. An unusable one is skipped and reported.

upstream: cmd/kube-controller-manager/app/controllermanager.go#NewControllerDescriptors
"""

from functools import cache
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points

import msgspec

from kcm_cli.component.option_flags import flags_of
from kcm_cli.engine.descriptor import Descriptor
from kcm_cli.manager.generic_options import generic_flags

_TABLE: tuple[str | Descriptor, ...] = (
    "serviceaccount_token",
    "endpoints",
    "endpointslice",
    "endpointslice_mirroring",
    "replicationcontroller",
    "pod_garbage_collector",
    "resourcequota",
    "namespace",
    "serviceaccount",
    "garbage_collector",
    "daemonset",
    "job",
    "podgroup_protection",
    "deployment",
    "replicaset",
    "horizontal_pod_autoscaler",
    "disruption",
    "statefulset",
    "cronjob",
    "certificatesigningrequest_signing",
    "certificatesigningrequest_approving",
    "certificatesigningrequest_cleaner",
    "podcertificaterequest_cleaner",
    "ttl",
    "bootstrap_signer",
    "token_cleaner",
    "node_ipam",
    "node_lifecycle",
    "service_lb",
    Descriptor(name="node-route-controller", alias="route", cloud_only=True),
    Descriptor(name="cloud-node-lifecycle-controller", alias="cloud-node-lifecycle", cloud_only=True),
    "persistentvolume_binder",
    "persistentvolume_attach_detach",
    "persistentvolume_expander",
    "clusterrole_aggregation",
    "persistentvolumeclaim_protection",
    "persistentvolume_protection",
    "volumeattributesclass_protection",
    "ttl_after_finished",
    "root_ca_certificate_publisher",
    "kube_apiserver_serving_clustertrustbundle_publisher",
    "ephemeral_volume",
    "storageversion_garbage_collector",
    "resourceclaim",
    "resourcepoolstatusrequest",
    "device_taint_eviction",
    "legacy_serviceaccount_token_cleaner",
    "validatingadmissionpolicy_status",
    "taint_eviction",
    "service_cidr",
    "storage_version_migrator",
    "selinux_warning",
)
"""Folders of ``kcm_cli.controllers``, and controllers of which nothing is left but the name."""
GROUP = "kcm.controllers"


def _descriptor(row: str | Descriptor) -> Descriptor:
    if isinstance(row, Descriptor):
        return row
    found: Descriptor = import_module(f"kcm_cli.controllers.{row}").DESCRIPTOR
    return found


CONTROLLERS = tuple(map(_descriptor, _TABLE))


class Unusable(Exception):
    """A package's controller cannot be used; the text says why."""


class Installed(msgspec.Struct, frozen=True):
    """The controllers of installed packages, and one line for each skipped entry point."""

    controllers: tuple[Descriptor, ...]
    problems: tuple[str, ...]


def all_controllers() -> tuple[Descriptor, ...]:
    """The built-in controllers and those of installed packages."""
    return (*CONTROLLERS, *installed().controllers)


@cache
def installed() -> Installed:
    """Load the controllers of installed packages. They must not reuse names and flags of others."""
    found: list[Descriptor] = []
    problems: list[str] = []
    for point in entry_points(group=GROUP):
        try:
            found.append(_usable(point, (*CONTROLLERS, *found)))
        except Unusable as error:
            problems.append(f"the controller {point.name} ({point.value}) of an installed package is left out: {error}")
    return Installed(tuple(found), tuple(problems))


def _usable(point: EntryPoint, others: tuple[Descriptor, ...]) -> Descriptor:
    """Load and check an entry point. Raises Unusable."""
    try:
        descriptor = point.load()
        if not isinstance(descriptor, Descriptor):
            raise Unusable("it is no kcm_cli.engine.descriptor.Descriptor")
        descriptor.load()
        flags = _flags(descriptor)
    except Unusable:
        raise
    except Exception as error:  # code of others, of which nothing is known
        raise Unusable(f"{type(error).__name__}: {error}") from error
    for other in others:
        for word in _words(descriptor):
            if word in _words(other):
                raise Unusable(f"{word} is the name of another one")
    taken = flags & generic_flags().union(*map(_flags, others))
    if taken:
        raise Unusable(f"there is another flag --{min(taken)}")
    return descriptor


def _words(descriptor: Descriptor) -> set[str]:
    return {descriptor.name, descriptor.alias} - {""}


def _flags(descriptor: Descriptor) -> frozenset[str]:
    options = descriptor.options
    return frozenset() if options is None else frozenset(flag.name for flag in flags_of(options))
