"""The component config with its defaults and a comment on every field, written from the declarations."""

import json
import textwrap
from collections.abc import Iterator

from kcm_cli.component.options import Binding, layout
from kcm_cli.manager.config_files import COMPONENT_CONFIG
from kcm_cli.manager.options import ComponentConfig

_WIDTH = 118
_HEAD = """\
# Component config of kcm with every field at its default. Written by `make docs` from the options'
# declarations; copy it, keep what you change, and start kcm with --config FILE. Flags go before it.
"""


def sample() -> str:
    """configs/kcm-config.yaml."""
    lines = [_HEAD + f"apiVersion: {COMPONENT_CONFIG.api_versions[0]}", f"kind: {COMPONENT_CONFIG.kind}"]
    open_path: tuple[str, ...] = ()
    places = list(layout(ComponentConfig))
    for index, (key, binding) in enumerate(places):
        shared = next((n for n, (a, b) in enumerate(zip(open_path, key[:-1], strict=False)) if a != b), len(key) - 1)
        shared = min(shared, len(open_path))
        lines += [f"{'  ' * depth}{key[depth]}:" for depth in range(shared, len(key) - 1)]
        if len(key) == 1:
            lines.append("")
        if binding is not None:
            lines += _field(binding, key)
            open_path = key[:-1]
            continue
        empty = index + 1 == len(places) or places[index + 1][0][: len(key)] != key
        lines.append(f"{'  ' * (len(key) - 1)}{key[-1]}:{' {}' if empty else ''}")
        open_path = () if empty else key
    return "\n".join(lines) + "\n"


def _field(binding: Binding, key: tuple[str, ...]) -> Iterator[str]:
    declared = binding.option
    indent = "  " * (len(key) - 1)
    flag = f" (--{declared.name})" if declared.name else ""
    warning = f" Deprecated: {declared.deprecated}" if declared.deprecated else ""
    yield from textwrap.wrap(
        f"{declared.help}{warning}{flag}",
        _WIDTH,
        initial_indent=f"{indent}# ",
        subsequent_indent=f"{indent}# ",
        break_on_hyphens=False,
    )
    yield f"{indent}{key[-1]}: {json.dumps(declared.kind.to_doc(declared.default))}"
