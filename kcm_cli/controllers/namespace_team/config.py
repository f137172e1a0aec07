"""Options of the namespace-team-controller."""

from collections.abc import Iterator

from kcm_cli.component.options import OptionGroup, option
from kcm_cli.component.value_types import STRING


class NamespaceTeamConfig(OptionGroup):
    team: str = option(STRING, "nobody", flag="namespace-team", key="DefaultTeam", help="Team of new namespaces.")

    def problems(self) -> Iterator[str]:
        if len(self.team) > 63:
            yield f"namespace-team must not be longer than 63 characters, but got {self.team}"
