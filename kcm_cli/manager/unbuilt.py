"""Options of controllers that are not built yet: what was set there has no effect, and the user should know."""

from collections.abc import Collection, Iterator

from kcm_cli.component import options
from kcm_cli.component.options import Binding
from kcm_cli.manager.config_controllers import KnownControllers
from kcm_cli.manager.options import Options, bindings


def warnings(tree: Options, flags: Collection[str], running: Collection[str], known: KnownControllers) -> list[str]:
    """One line for each controller that would run, is not built, and has options that are not at their defaults.

    ``flags``: those that were given; options that come from the file go by their place in it.
    """
    return [_line(name, found) for name in running if name in known.unbuilt and (found := [*_set(tree, flags, name)])]


def _set(tree: Options, flags: Collection[str], controller: str) -> Iterator[str]:
    for binding in bindings():
        if _owned(binding, controller) and options.read(tree, binding.path) != binding.option.default:
            flag = binding.option.flag
            yield f"--{flag}" if flag in flags else ".".join(binding.key)


def _owned(binding: Binding, controller: str) -> bool:
    folder = controller.removesuffix("-controller").replace("-", "_")
    return binding.path[:2] == ("component", folder)


def _line(controller: str, names: list[str]) -> str:
    effect = "it has" if len(names) == 1 else "they have"
    return f"{', '.join(names)}: set, but {controller} is not built yet, so {effect} no effect"
