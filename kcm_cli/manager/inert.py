"""Options that have no effect, because kcm lacks the feature. Users who set one are warned."""

from collections.abc import Collection, Mapping

from kcm_cli.component import options
from kcm_cli.manager.options import bindings

LACKING: Mapping[options.Path, str] = {
    ("component", "generic", "port"): "plain HTTP is no longer served",
    ("component", "generic", "address"): "plain HTTP is no longer served",
}


def warnings(given: Mapping[options.Path, object], flags: Collection[str]) -> list[str]:
    """One line for each such option with a value other than its default.

    flags: the names of the given flags. Options from the configuration file are named by their path.
    """
    lines: list[str] = []
    for binding in bindings():
        reason, option = LACKING.get(binding.path), binding.option
        if reason is not None and given.get(binding.path, option.default) != option.default:
            name = f"--{option.name}" if option.name in flags else ".".join(binding.key)
            lines.append(f"{name}: set, but {reason}, so it has no effect")
    return lines
