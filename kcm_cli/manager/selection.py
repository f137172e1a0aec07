"""Chooses the controllers to build: by --controllers, feature gates, served APIs, and their lock.

There are two locks while controllers move to a cloud controller manager (leader migration).

upstream: staging/src/k8s.io/controller-manager/pkg/leadermigration
"""

import asyncio
import logging
from collections.abc import Collection, Mapping, Sequence
from enum import Enum

from kcm_cli.component.garbage import no_collections
from kcm_cli.component.leader_config import DEFAULT_MIGRATION
from kcm_cli.engine.context import Gates
from kcm_cli.engine.descriptor import Descriptor
from kcm_cli.manager.config import Config
from kcm_cli.manager.controller_map import all_controllers
from kcm_cli.manager.running import MANAGER
from kcm_cli.rest.client import Client
from kcm_cli.rest.discovery import resources_of

log = logging.getLogger(__name__)


class Lock(Enum):
    """The lock under which a controller runs."""

    MAIN = "main"
    MIGRATION = "migration"
    ELSEWHERE = "elsewhere"


def locks(leaders: Sequence[tuple[str, str]], aliases: Mapping[str, str]) -> Mapping[str, Lock]:
    """The lock of each named controller. ``leaders``: pairs of a controller and the component that runs it."""
    found: dict[str, Lock] = {}
    for controller, component in leaders:
        ours = component in (MANAGER, "*")
        found[aliases.get(controller, controller)] = Lock.MIGRATION if ours else Lock.ELSEWHERE
    return found


async def served_apis(config: Config, client: Client) -> frozenset[str]:
    """The APIs that controllers require and the API server serves, as group/version/plural.

    Raises ApiError, TransportError: as upstream, the start fails if that cannot be determined.
    """
    required = {
        api.rpartition("/")[0]
        for one in all_controllers()
        if one.name in config.controllers and _is_enabled(one, config.gates)
        for api in one.requires
    }
    found = [await resources_of(client, *group_version.split("/")) for group_version in sorted(required)]
    return frozenset(f"{one.gvr.group_version}/{one.gvr.plural}" for served in found for one in served)


def chosen_under(held: Collection[Lock], config: Config, served: frozenset[str]) -> tuple[Descriptor, ...]:
    """The controllers to run while these locks are held. The one that starts first runs under the main lock only."""
    everything = all_controllers()
    table = _locks(config, everything.aliases)
    here = tuple(
        one
        for one in everything
        if table.get(one.name, Lock.MAIN) in held and (Lock.MAIN in held or not one.starts_first)
    )
    return choose(here, config.controllers, config.gates, served)


def _locks(config: Config, aliases: Mapping[str, str]) -> Mapping[str, Lock]:
    generic = config.component.generic
    if not generic.leader_migration_enabled:
        return {}
    return locks(generic.leader_migration.controller_leaders or DEFAULT_MIGRATION.controller_leaders, aliases)


async def load(config: Config) -> None:
    """Load the modules of the controllers that may be chosen. Yields to the loop in between. Raises StartError."""
    for one in all_controllers():
        if _is_wanted(one, config.controllers) and _is_enabled(one, config.gates) and not one.cloud_only:
            with no_collections():
                one.load()
            await asyncio.sleep(0)


def _is_wanted(descriptor: Descriptor, selected: Collection[str]) -> bool:
    return descriptor.starts_first or descriptor.name in selected


def _is_enabled(descriptor: Descriptor, gates: Gates) -> bool:
    return all(gates.enabled(gate) for gate in descriptor.gates)


def choose(
    descriptors: tuple[Descriptor, ...],
    selected: Collection[str],
    gates: Gates,
    served: frozenset[str],
) -> tuple[Descriptor, ...]:
    """The descriptors to run. The others are logged. ``selected``: the names that --controllers enables."""
    chosen: list[Descriptor] = []
    for descriptor in descriptors:
        fields: dict[str, object] = {"controller": descriptor.name}
        if not _is_wanted(descriptor, selected):
            log.info("Warning: controller is disabled", extra={"fields": fields})
            continue
        if not _is_enabled(descriptor, gates):
            more = {**fields, "requiredFeatureGates": descriptor.gates}
            log.info("Controller is disabled by a feature gate", extra={"fields": more})
        elif descriptor.cloud_only:
            log.info("Skipping a cloud provider controller", extra={"fields": fields})
        elif descriptor.requires and not served.intersection(descriptor.requires):
            more = {**fields, "resources": descriptor.requires}
            log.info("No known version of the API is served", extra={"fields": more})
        else:
            chosen.append(descriptor)
            continue
        log.info("Warning: skipping controller", extra={"fields": fields})
    return tuple(chosen)
