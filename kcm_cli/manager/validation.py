"""Validates options of several groups beside each other. Rules about one option or group are declared with them."""

from collections.abc import Iterator

from kcm_cli.component import options
from kcm_cli.component.featuregates import FeatureGates
from kcm_cli.manager.controller_map import all_controllers
from kcm_cli.manager.options import Options


def problems_of(tree: Options, gates: FeatureGates) -> list[str]:
    """Their errors, one line each."""
    return [
        *all_controllers().unknown(tree.component.generic.controllers),
        *_logs(tree, gates),
        *_user_ids(tree, gates),
        *_beside_others(tree),
        *_standby(tree),
    ]


def _logs(tree: Options, gates: FeatureGates) -> Iterator[str]:
    if not gates.enabled("LoggingAlphaOptions"):
        for flag in tree.logs.alpha_flags():
            yield f"{flag}: Feature LoggingAlphaOptions is disabled"
    if tree.logs.format == "json" and not gates.enabled("LoggingBetaOptions"):
        yield "logging-format: Log format json is disabled, see LoggingBetaOptions feature"


def _user_ids(tree: Options, gates: FeatureGates) -> Iterator[str]:
    headers = tree.authentication.requestheader_uid_headers
    if headers and not gates.enabled("RemoteRequestHeaderUID"):
        yield 'requestheader-uid-headers requires the "RemoteRequestHeaderUID" feature to be enabled'


def _standby(tree: Options) -> Iterator[str]:
    if tree.standby.warm_standby and tree.component.generic.leader_migration_enabled:
        yield (
            "warm-standby cannot be used with enable-leader-migration, where each of two leases has caches of its own: "
            "leave one of the flags out"
        )


def _beside_others(tree: Options) -> Iterator[str]:
    """The errors in the options of controllers that run, so that they are reported before the manager leads."""
    runs = all_controllers().selected(tree.component.generic.controllers)
    groups = {type(part): part for part in options.parts(tree.component)}
    for one in all_controllers():
        if one.problems is not None and one.name in runs:
            yield from one.problems(groups)
