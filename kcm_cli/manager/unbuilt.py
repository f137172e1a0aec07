"""Options that have no effect: those of controllers that are not built yet, and those of parts that kcm lacks.

The user who sets one should know.
"""

from collections.abc import Collection, Iterator, Mapping

from kcm_cli.component import options
from kcm_cli.component.options import Binding
from kcm_cli.manager.config_controllers import KnownControllers
from kcm_cli.manager.options import Options, bindings

LACKING: Mapping[options.Path, str] = {
    ("component", "persistentvolume_binder", "flex_volume_plugin_dir"): "kcm calls no FlexVolume plugins",
}


def warnings(tree: Options, flags: Collection[str], running: Collection[str], known: KnownControllers) -> list[str]:
    """One line for each controller that would run, is not built, and has options that are not at their defaults; and
    one for each such option of a part that is lacking.

    ``flags``: those that were given; options that come from the file go by their place in it.
    """
    unbuilt = [name for name in running if name in known.unbuilt]
    lines = [_line(found, f"{name} is not built yet") for name in unbuilt if (found := [*_set(tree, flags, name)])]
    changed = (binding for binding in bindings() if binding.path in LACKING and _is_set(tree, binding))
    return [*lines, *(_line([_name(binding, flags)], LACKING[binding.path]) for binding in changed)]


def _set(tree: Options, flags: Collection[str], controller: str) -> Iterator[str]:
    for binding in bindings():
        if _owned(binding, controller) and _is_set(tree, binding):
            yield _name(binding, flags)


def _is_set(tree: Options, binding: Binding) -> bool:
    return options.read(tree, binding.path) != binding.option.default


def _name(binding: Binding, flags: Collection[str]) -> str:
    flag = binding.option.flag
    return f"--{flag}" if flag in flags else ".".join(binding.key)


def _owned(binding: Binding, controller: str) -> bool:
    folder = controller.removesuffix("-controller").replace("-", "_")
    return binding.path[:2] == ("component", folder)


def _line(names: list[str], reason: str) -> str:
    effect = "it has" if len(names) == 1 else "they have"
    return f"{', '.join(names)}: set, but {reason}, so {effect} no effect"
