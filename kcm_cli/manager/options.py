"""All options of the manager as a tree, and their flags.

``ComponentConfig`` is the configuration file and /configz (KubeControllerManagerConfiguration v1alpha1); ``Options``
adds the options that have flags only. A controller's options come from its descriptor. Sections of the help and fields
of the file have upstream's order: by the key in the file, but for those that say what they follow.

upstream: cmd/kube-controller-manager/app/options, staging/src/k8s.io/kube-controller-manager/config/v1alpha1
"""

from collections.abc import Collection, Iterable, Mapping
from functools import cache
from typing import Any

from kcm_cli.component.flagset import FlagSet, Parsed
from kcm_cli.component.options import Binding, Group, OptionGroup, bind, flags_of, group, layout, lazy_group
from kcm_cli.engine.descriptor import Descriptor
from kcm_cli.manager.controller_map import DEPRECATED, all_controllers
from kcm_cli.manager.generic_options import PROCESS_FLAGS, FlagOptions, GenericComponentConfig

FIRST = ("Debugging", "Leader-migration", "Generic", "Secure serving", "Authentication", "Authorization")
LAST = ("Metrics", "Logs", "Misc", "Kcm", "Global")
"""The sections of the help before and after those of controllers."""


@cache
def controller_options() -> type[Group]:
    """A group with the options of each controller, in a field with the name of its folder."""
    declared = {one.config_key: one for one in _with_options()}
    order = arranged(sorted(declared), {key: one.file_after for key, one in declared.items() if one.file_after})
    types: dict[str, type[Group]] = {}
    fields: dict[str, Any] = {}
    for key in order:
        one = declared[key]
        if one.options is not None:
            types[one.folder] = one.options
            fields[one.folder] = group(one.options, key=key, section=one.section)
    return type("ControllerOptions", (OptionGroup,), {"__annotations__": types, **fields})


def _with_options() -> list[Descriptor]:
    return [one for one in (*all_controllers(), DEPRECATED) if one.options is not None]


def arranged(names: Iterable[str], after: Mapping[str, str]) -> list[str]:
    """The names in this order, but each name in ``after`` behind that which it follows, if there is one."""
    placed = [name for name in names if name not in after]
    waiting = dict(after)
    while waiting:
        name = next((one for one, before in waiting.items() if before in placed), next(iter(waiting)))
        before = waiting.pop(name)
        placed.insert(placed.index(before) + 1 if before in placed else len(placed), name)
    return placed


class ComponentConfig(GenericComponentConfig):
    """KubeControllerManagerConfiguration. ``controllers``: a group for each controller, with the name of its folder."""

    controllers: Any = lazy_group(controller_options)


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
    flags = (*flags_of(Options), *PROCESS_FLAGS)
    order = {section: index for index, section in enumerate(_sections({flag.section for flag in flags}))}
    return FlagSet(sorted(flags, key=lambda flag: (order[flag.section], flag.name)))


def _sections(used: Collection[str]) -> list[str]:
    """The sections of the help in order; those that no controller has stand behind the controllers'."""
    ours = [one.section for one in sorted(_with_options(), key=lambda one: one.config_key)]
    others = sorted({*used}.difference(FIRST, ours, LAST))
    after = {one.section: one.help_after for one in _with_options() if one.help_after}
    return arranged(dict.fromkeys((*FIRST, *ours, *others, *LAST)), after)


def flags_beside_file(parsed: Parsed) -> list[str]:
    """The given flags, sorted, that no field of the configuration file can take the place of."""
    in_file = {binding.option.name for _, binding in layout(ComponentConfig) if binding is not None}
    return sorted(parsed.values.keys() - in_file - {flag.name for flag in PROCESS_FLAGS})
