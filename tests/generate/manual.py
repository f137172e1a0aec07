"""The man pages in configs/man, which a wheel installs as share/man/man1: one for kcm and one for each subcommand.

In the macros of man(7), which man-db and mandoc format. A page has no date: the same sources give the same bytes.
"""

import textwrap
from collections.abc import Callable, Iterable, Iterator
from itertools import groupby
from typing import TypeVar

import msgspec

from kcm_cli.cli import bug_report, manager, plan_flags, sandbox_assets, sandbox_flags, sandbox_nodes, top, trace, usage
from kcm_cli.cli.subcommands import MANAGER_EXITS, SUBCOMMANDS, USUAL_EXITS, Exits, subcommand
from kcm_cli.component.featuregates import resolve
from kcm_cli.component.flagset import Flag, FlagSet
from kcm_cli.component.version import OWN_VERSION
from kcm_cli.manager.controller_map import CONTROLLERS
from kcm_cli.manager.options import flag_set

T = TypeVar("T")
_SUMMARY = "run the controllers of a Kubernetes cluster"
_KUBECONFIG = (("KUBECONFIG", "The kubeconfig of the cluster, where --kubeconfig is not given."),)
_ROOT_USAGE = "\n\nUsage:\n  kcm [flags]\n" + "\n".join(f"  kcm {one.name} [flags]" for one in SUBCOMMANDS)


class Page(msgspec.Struct, frozen=True):
    """What a page is made of. name: the words of the command. about: see ``usage.parts``."""

    name: str
    summary: str
    about: str
    flags: FlagSet
    exits: Exits = USUAL_EXITS
    environment: tuple[tuple[str, str], ...] = ()

    @property
    def file(self) -> str:
        return f"configs/man/{self.name.replace(' ', '-')}.1"


def pages() -> tuple[Page, ...]:
    """All pages."""
    return (
        Page("kcm", _SUMMARY, manager.ABOUT + _ROOT_USAGE, flag_set(), MANAGER_EXITS),
        _page("sandbox", sandbox_flags.ABOUT, sandbox_flags.FLAGS),
        Page(
            "kcm sandbox nodes",
            "change the simulated nodes",
            sandbox_nodes.ABOUT,
            sandbox_nodes.FLAGS,
            environment=_KUBECONFIG,
        ),
        Page(
            "kcm sandbox assets",
            "make a folder for suites that use envtest",
            sandbox_assets.ABOUT,
            sandbox_assets.FLAGS,
            environment=(
                ("KCM_SANDBOX_FLAGS", "Flags of one run of kube-apiserver, in place of those of the folder."),
            ),
        ),
        _page("top", top.ABOUT, top.FLAGS),
        _page("trace", trace.ABOUT, trace.FLAGS, _KUBECONFIG),
        _page("bug-report", bug_report.ABOUT, bug_report.FLAGS),
        _page("plan", plan_flags.ABOUT, plan_flags.FLAGS, _KUBECONFIG),
    )


def _page(name: str, about: str, flags: FlagSet, environment: tuple[tuple[str, str], ...] = ()) -> Page:
    one = subcommand(name)
    summary = f"{one.help[0].lower()}{one.help[1:].rstrip('.')}"
    return Page(f"kcm {name}", summary, about, flags, one.exits, environment)


def manual(page: Page) -> str:
    """The text of a page."""
    about, commands = usage.parts(page.about)
    title = page.name.replace(" ", "-")
    lines = [
        '.\\" Written by make docs from the declarations; do not edit.',
        f'.TH {title.upper()} 1 "" "kcm {OWN_VERSION.removeprefix("v")}" "kcm"',
        ".SH NAME",
        f"{_text(title)} \\- {_text(page.summary)}",
        ".SH SYNOPSIS",
        ".nf",
        *(_text(" ".join(command.split()), hanging="      ") for command in commands),
        ".fi",
        ".SH DESCRIPTION",
        _text(about),
        ".SH OPTIONS",
    ]
    visible = [flag for flag in page.flags if not flag.hidden]
    for section, flags in groupby(visible, key=lambda flag: flag.section):
        lines += [f'.SS "{_text(section)} flags"', *_listed(flags, _flag)]
    lines += _names() if page.name == "kcm" else ()
    lines += [
        ".SH EXIT STATUS",
        *_listed(page.exits, lambda one: (f"\\fB{one[0]}\\fR", f"{one[1][0].upper()}{one[1][1:]}.")),
    ]
    if page.environment:
        lines += [".SH ENVIRONMENT", *_listed(page.environment, lambda one: (f"\\fB{one[0]}\\fR", one[1]))]
    lines += [".SH SEE ALSO", ",\n".join(_reference(other) for other in pages_beside(page.name))]
    return "\n".join(lines) + "\n"


def pages_beside(name: str) -> list[str]:
    """The other pages, sorted."""
    return sorted(one.name.replace(" ", "-") for one in pages() if one.name != name)


def _reference(name: str) -> str:
    return f".BR {_text(name)} (1)"


def _names() -> Iterator[str]:
    """What --controllers and --feature-gates may name."""
    usual = ", ".join(sorted(one.name for one in CONTROLLERS if one.default_enabled))
    others = ", ".join(sorted(one.name for one in CONTROLLERS if not one.default_enabled))
    yield from (".SH CONTROLLERS", _text(f"{usual}."), ".PP", _text(f"Off by default: {others}."))
    yield ".SH FEATURE GATES"
    gates = [gate for gate in resolve(()).gates.values() if gate.stage in ("ALPHA", "BETA")]
    yield from _listed(gates, lambda gate: (f"\\fB{gate.name}\\fR", f"{gate.stage.lower()}, {_switch(gate.default)}."))


def _switch(on: bool) -> str:
    return "on by default" if on else "off by default"


def _listed(things: Iterable[T], item: Callable[[T], tuple[str, str]]) -> Iterator[str]:
    """Paragraphs with a tag, which may have macros of its own, and a text."""
    for thing in things:
        tag, text = item(thing)
        yield from (".TP", tag, _text(text))


def _flag(flag: Flag) -> tuple[str, str]:
    letter = f"\\fB\\-{flag.shorthand}\\fR, " if flag.shorthand else ""
    tag = f"{letter}\\fB\\-\\-{_text(flag.name)}\\fR"
    if flag.kind.word != "bool":
        value = f"\\fI{_text(flag.kind.word)}\\fR"
        tag += f"[={value}]" if flag.kind.bare is not None else f"={value}"
    return tag, usage.flag_text(flag)


def _text(text: str, *, hanging: str = "") -> str:
    """Lines of a text in which no character is markup. hanging: before all lines but the first."""
    escaped = text.replace("\\", "\\e").replace("-", "\\-").replace("'", "\\(aq").replace("`", "\\(ga")
    lines = textwrap.wrap(escaped, 78, subsequent_indent=hanging, break_long_words=False, break_on_hyphens=False)
    return "\n".join(f"\\&{line}" if line.startswith(".") else line for line in lines)
