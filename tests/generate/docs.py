"""Documents that are written from the declarations: the reference pages, configs/kcm-config.yaml and the man pages.

``python -m tests.generate.docs`` writes them into the current directory; ``--check`` says whether they are current.
"""

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import groupby
from pathlib import Path

from kcm_cli.component.featuregates import foreign, resolve
from kcm_cli.component.featuregates_inert import INERT
from kcm_cli.component.flagset import Flag
from kcm_cli.manager.controller_map import CONTROLLERS
from kcm_cli.manager.options import bindings, flag_set
from tests.generate.api import api_document
from tests.generate.config_sample import sample
from tests.generate.errors import errors_document
from tests.generate.manual import manual, pages
from tests.generate.metrics import metrics_document
from tests.generate.visits import visits_document

_HEAD = """\
# Flags of kcm

Written by `make docs` from the options' declarations; do not edit.

`_` and `-` are equivalent in names. Set a bool with `--flag` or `--flag=false`, any other flag with `--flag=value` or
`--flag value`. Write durations as `1h30m` or `300ms`. Separate the items of a list with commas, or repeat the flag.
`--config` reads a file with the fields in the column "Configuration file"; flags override it.
"""


def flags_document() -> str:
    """docs/flags.md."""
    keys = {b.option.name: ".".join(b.key) for b in bindings() if b.option.name}
    visible = [flag for flag in flag_set() if not flag.hidden]
    lines = [_HEAD]
    for title, flags in groupby(visible, key=lambda flag: flag.section):
        lines += [f"## {title} flags", "", *_table(flags, keys), ""]
    lines += ["## Deprecated flags", "", "These flags are accepted with a warning. `--help` does not show them.", ""]
    lines += [*_deprecated(), "", "## Controllers", "", *_controllers(), "", "## Feature gates", "", *_gates(), ""]
    return "\n".join(lines)


def _table(flags: Iterator[Flag], keys: Mapping[str, str]) -> Iterator[str]:
    yield "| Flag | Type | Default | Configuration file | Meaning |"
    yield "| --- | --- | --- | --- | --- |"
    for flag in flags:
        name = f"`--{flag.name}`" + (f", `-{flag.shorthand}`" if flag.shorthand else "")
        shown = flag.kind.show(flag.default)
        default = f"`{shown}`" if shown else ""
        key = keys.get(flag.name, "")
        yield f"| {name} | {flag.kind.word} | {default} | {f'`{key}`' if key else ''} | {_cell(flag.help)} |"


def _deprecated() -> Iterator[str]:
    yield "| Flag | Type | Status |"
    yield "| --- | --- | --- |"
    for flag in sorted((flag for flag in flag_set() if flag.hidden), key=lambda flag: flag.name):
        yield f"| `--{flag.name}` | {flag.kind.word} | {_cell(flag.deprecated)} |"


def _controllers() -> Iterator[str]:
    yield "| Name | Former name | On by default | Feature gates |"
    yield "| --- | --- | --- | --- |"
    for controller in CONTROLLERS:
        on = "cloud only" if controller.cloud_only else "yes" if controller.default_enabled else "no"
        yield f"| {controller.name} | {controller.alias} | {on} | {', '.join(controller.gates)} |"


def _gates() -> Iterator[str]:
    yield "Gates of other components are accepted and have no effect here: all components can have the same gates."
    yield ""
    yield "| Gate | Stage | Default | Effect |"
    yield "| --- | --- | --- | --- |"
    for gate in resolve(()).gates.values():
        default = "on" if gate.default else "off"
        yield f"| {gate.name} | {gate.stage} | {default}{', locked' if gate.locked else ''} | {_effect(gate.name)} |"


def _effect(gate: str) -> str:
    if foreign(gate):
        return "other components"
    return f"none: {INERT[gate]}" if gate in INERT else ""


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


DOCUMENTS: dict[str, Callable[[], str]] = {
    "docs/flags.md": flags_document,
    "docs/metrics.md": metrics_document,
    "docs/errors.md": errors_document,
    "docs/api.md": api_document,
    "docs/visits.md": visits_document,
    "configs/kcm-config.yaml": sample,
    **{page.file: partial(manual, page) for page in pages()},
}


def main(arguments: Sequence[str]) -> int:
    """Write the documents, or with --check compare them; 1 if one is not current."""
    stale = 0
    for name, make in DOCUMENTS.items():
        path, text = Path(name), make()
        if "--check" not in arguments:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        elif not path.exists() or path.read_text(encoding="utf-8") != text:
            sys.stderr.write(f"{name} is not current: run make docs\n")
            stale = 1
    return stale


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
