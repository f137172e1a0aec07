"""The controllers of this manager, and what --controllers says about them.

A built-in controller is a folder of ``kcm_cli.controllers`` with a DESCRIPTOR; its code is imported only when it
starts. Other packages add controllers with the entry point group ``kcm.controllers``: each entry point is a Descriptor.
An unusable one is skipped and reported.

upstream: cmd/kube-controller-manager/app/controllermanager.go#NewControllerDescriptors,
staging/src/k8s.io/controller-manager/options/generic.go
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from functools import cache
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from keyword import iskeyword
from pkgutil import iter_modules

import msgspec

from kcm_cli import controllers
from kcm_cli.component import options
from kcm_cli.component.flagset import FlagSet
from kcm_cli.component.generic_config import DeprecatedConfig
from kcm_cli.engine.descriptor import Descriptor
from kcm_cli.manager.generic_options import PROCESS_FLAGS, FlagOptions, GenericComponentConfig

GROUP = "kcm.controllers"
DEPRECATED = Descriptor(name="deprecated-controller", options=DeprecatedConfig, cloud_only=True)
"""No controller: a field of the configuration file that upstream has kept."""


class Controllers(tuple[Descriptor, ...]):
    """Controllers, and the meaning of --controllers for them."""

    __slots__ = ()

    @property
    def aliases(self) -> Mapping[str, str]:
        """Their names by their former names."""
        return {one.alias: one.name for one in self if one.alias}

    def canonical(self, selection: Iterable[str]) -> tuple[str, ...]:
        """The selection with former names replaced by names."""
        aliases = self.aliases
        signed = (("-", item[1:]) if item.startswith("-") else ("", item) for item in selection)
        return tuple(sign + aliases.get(name, name) for sign, name in signed)

    def unknown(self, selection: Iterable[str]) -> Iterator[str]:
        """One line for each item that names no controller."""
        names = {name for one in self for name in (one.name, one.alias) if name}
        for item in selection:
            name = item.removeprefix("-")
            if item != "*" and name not in names:
                near = get_close_matches(name, sorted(names), n=1)
                hint = f"did you mean {near[0]}?" if near else "kcm --help lists them"
                yield f'"{name}" is not in the list of known controllers ({hint})'

    def selected(self, selection: Iterable[str]) -> tuple[str, ...]:
        """The names of the controllers that run."""
        named = self.canonical(selection)
        return tuple(one.name for one in self if is_enabled(one.name, named, off_by_default=not one.default_enabled))


def is_enabled(name: str, selection: Sequence[str], *, off_by_default: bool) -> bool:
    """Whether a controller runs. The first of ``name`` and ``-name`` decides, else ``*`` and the default.

    The selection has names, not former names.
    """
    for item in selection:
        if item == name:
            return True
        if item == "-" + name:
            return False
    return "*" in selection and not off_by_default


def _built_in() -> Iterator[Descriptor]:
    for folder in iter_modules(controllers.__path__, f"{controllers.__name__}."):
        declared = getattr(import_module(folder.name), "DESCRIPTOR", None)
        if declared is not None:  # else it is shared by several
            yield declared


CONTROLLERS = Controllers(_built_in())
"""The built-in controllers, by name."""


class Unusable(Exception):
    """A package's controller cannot be used; the text says why."""


class Installed(msgspec.Struct, frozen=True):
    """The controllers of installed packages, and one line for each skipped entry point."""

    controllers: tuple[Descriptor, ...]
    problems: tuple[str, ...]


def all_controllers() -> Controllers:
    """The built-in controllers and those of installed packages."""
    return Controllers((*CONTROLLERS, *installed().controllers))


@cache
def queue_owners() -> Mapping[str, str]:
    """The controller of each work queue, by the queue's name in metrics. Imports all controllers."""
    owned = (one for one in all_controllers() if not one.cloud_only)
    return {queue.name: one.name for one in owned for queue in one.load().all_queues}


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


def _usable(point: EntryPoint, others: Collection[Descriptor]) -> Descriptor:
    """Load and check an entry point. Raises Unusable."""
    try:
        descriptor = point.load()
        if not isinstance(descriptor, Descriptor):
            raise Unusable("it is no kcm_cli.engine.descriptor.Descriptor")
        from kcm_cli.engine.controller import Controller  # imported here: help of kcm alone does not need it

        if not isinstance(descriptor.load(), Controller):
            raise Unusable("its controller is no kcm_cli.engine.controller.Controller")
        _check(descriptor, others)
    except Unusable:
        raise
    except (Exception, SystemExit) as error:  # code of others, of which nothing is known
        raise Unusable(f"{type(error).__name__}: {error}") from error
    return descriptor


def _check(descriptor: Descriptor, others: Collection[Descriptor]) -> None:
    """Raises Unusable for what would be ambiguous beside the other controllers, or cannot be made."""
    if not descriptor.folder.isidentifier() or iskeyword(descriptor.folder):
        raise Unusable(f'"{descriptor.name}" is no name in lower case with hyphens')
    theirs = {DEPRECATED.folder}.union(*map(_words, others))
    for word in _words(descriptor):
        if word in theirs:
            raise Unusable(f"{word} is the name of another one")
    if descriptor.options is None:
        return
    if wrong := options.problems(options.build(descriptor.options, {})):
        raise Unusable(f"its defaults are invalid: {wrong[0]}")
    keys = {one.config_key for one in (DEPRECATED, *others)}
    if descriptor.config_key in keys.union(key[0] for key, _ in options.layout(GenericComponentConfig)):
        raise Unusable(f"{descriptor.config_key} is in the configuration file already")
    groups = (GenericComponentConfig, FlagOptions, *(one.options for one in others if one.options is not None))
    flags = [flag for type_ in groups for flag in options.flags_of(type_)]
    try:
        FlagSet((*PROCESS_FLAGS, *flags, *options.flags_of(descriptor.options)))
    except ValueError as error:
        raise Unusable(str(error)) from None


def _words(descriptor: Descriptor) -> list[str]:
    return [word for word in (descriptor.name, descriptor.alias, descriptor.folder) if word]
