"""Values that have no effect, because kcm lacks the feature. Users who set one are warned."""

from collections.abc import Collection, Iterator, Mapping

from kcm_cli.component import options
from kcm_cli.component.leader_config import FORMER_LOCKS, LOCK
from kcm_cli.manager.options import bindings

LACKING: Mapping[options.Path, str] = {
    ("component", "generic", "port"): "plain HTTP is no longer served",
    ("component", "generic", "address"): "plain HTTP is no longer served",
}
_LOCK = ("component", "generic", "leader_election", "resource_lock")


def warnings(given: Mapping[options.Path, object], flags: Collection[str]) -> Iterator[str]:
    """One line for each such value.

    given: the values by attribute path. flags: the names of the given flags. Options from the configuration file are
    named by their path.
    """
    for one in bindings():
        value = given.get(one.path, one.option.default)
        name = f"--{one.option.name}" if one.option.name in flags else ".".join(one.key)
        if one.path in LACKING and value != one.option.default:
            yield f"{name}: set, but {LACKING[one.path]}, so it has no effect"
        if one.path == _LOCK and value in FORMER_LOCKS:
            yield f'{name}={value} no longer does anything: the only lock left is "{LOCK}", which is used'
