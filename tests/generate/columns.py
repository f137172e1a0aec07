"""Makes columns.json.gz: the descriptions of fields that tables of ``kubectl get`` are headed with.

    python -m tests.generate.columns

They come from the API's schema in the installed package kubernetes-validate; which are needed is read from
the tables of ``kinds``.
"""

import json

from kcm_cli.sandbox.apiserver.kinds import KINDS
from kcm_cli.sandbox.apiserver.tables.column import PLAIN
from kcm_cli.sandbox.apiserver.tables.templates import SCALE
from tests.generate import data


def main() -> None:
    """Write columns.json.gz."""
    definitions = data.definitions()
    wanted = {column.about for layout in (*(kind.table for kind in KINDS), PLAIN, SCALE) for column in layout.columns}
    found = {about: text for about in sorted(wanted) if (text := _description(definitions, about))}
    data.write("columns", json.dumps(found, indent=0, sort_keys=True) + "\n")


def _description(definitions: dict[str, dict[str, dict[str, dict[str, str]]]], about: str) -> str:
    type_, dot, field = about.partition(".")
    if not dot or " " in about:
        return ""
    for name in sorted(definitions):
        *_, version, short = name.split(".")
        if short == type_ and version in ("v1", "v2") and field in definitions[name].get("properties", {}):
            if "autoscaling.v1." in name and type_.startswith("HorizontalPodAutoscaler"):
                continue
            return definitions[name]["properties"][field].get("description", "")
    return ""


if __name__ == "__main__":
    main()
