"""How plans agree with what the Go manager did: by controller, verb, kind and owner.

python -m tests.plans.agreement             one line for each scenario
python -m tests.plans.agreement --write     the table in docs/plan.md, too
"""

import json
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from kcm_cli.plan import Options, load
from kcm_cli.plan.simulation import simulate_changes
from kcm_cli.plan.twin.twin import SIMULATED, configuration
from kcm_cli.plan.twin.writes import Write
from tests.kit.places import ROOT
from tests.plans.scenarios import Scenario, scenarios

PLACE = ROOT / "tests" / "recorded" / "plans"
CONFLICT = 409
"""Such a write is tried again; how often depends on the moment."""
Line = tuple[str, str, str, str]
"""Controller, verb, resource with its subresource, owner."""
_GENERATED = frozenset(("pods", "endpointslices", "volumeattachments", "persistentvolumes", "controllerrevisions"))
_ROUTINE = frozenset(("events", "leases"))
_NOT_MODELLED = frozenset(("root-ca-cert-publisher", "tokens-controller", "service-ca-cert-publisher"))
"""Publishers of ConfigMaps and Secrets, which are not read."""


def line_of(user: str, verb: str, group: str, resource: str, subresource: str, owner: str, name: str) -> Line:
    """What two writes have in common that are taken for the same."""
    named = f"{resource}.{group}" if group else resource
    whole = f"{named}/{subresource}" if subresource else named
    return user, verb, whole, owner or ("" if resource in _GENERATED else name)


@dataclass(frozen=True)
class Agreement:
    """Of a scenario and one of its recordings: the lines that both have, those that only the Go manager wrote, those
    that only the plan has.

    other: those of both that were sent more or less often, with the Go manager's number and the plan's.
    """

    name: str
    both: frozenset[Line]
    missed: frozenset[Line]
    added: frozenset[Line]
    other: dict[Line, tuple[int, int]]

    @property
    def share(self) -> float:
        whole = len(self.both) + len(self.missed) + len(self.added)
        return len(self.both) / whole if whole else 1.0


def recorded() -> list[Scenario]:
    """The scenarios that there is a recording of."""
    return [one for one in scenarios() if (PLACE / f"{one.name}.json").exists()]


def recordings(name: str) -> list[Path]:
    """The recordings of a scenario. Where controllers race, or go through a map of Go's, it has several: each is what
    the Go manager did once."""
    return [PLACE / f"{name}.json", *sorted(PLACE.glob(f"{name}.*.json"))]


def compare(scenario: Scenario) -> Agreement:
    """Plan a scenario and set it beside the recording that it is closest to."""
    planned = planned_lines(scenario)
    return max((_beside(scenario.name, one, planned) for one in recordings(scenario.name)), key=lambda one: one.share)


def _beside(name: str, recording: Path, planned: Counter[Line]) -> Agreement:
    happened: Counter[Line] = Counter({tuple(line[:4]): line[4] for line in json.loads(recording.read_text())})
    there = frozenset(line for line in happened if _counts(line))
    said = frozenset(line for line in planned if _counts(line))
    both = there & said
    other = {line: (happened[line], planned[line]) for line in both if happened[line] != planned[line]}
    return Agreement(name, both, there - said, said - there, other)


def planned_lines(scenario: Scenario) -> Counter[Line]:
    """What the plan says that controllers write."""
    snapshot = load(PLACE / f"{scenario.name}.kcm")
    options = Options(horizon_s=scenario.watched_s, namespace=scenario.name)
    outcome = simulate_changes(snapshot, configuration(()), 1, scenario.changes, options)
    controllers = (write for write in outcome.writes if write.client not in SIMULATED and write.status != CONFLICT)
    return Counter(_line(write) for write in controllers if write.at_s >= outcome.since_s)


def _line(write: Write) -> Line:
    owner = write.owner if write.done else ""  # the audit log has the answer, and a refusal names no owner
    return line_of(write.client, write.verb, write.group, write.resource, write.subresource, owner, write.name)


def _counts(line: tuple[str, ...]) -> bool:
    return line[0] not in _NOT_MODELLED and line[2].partition(".")[0] not in _ROUTINE


def is_exact(line: Line) -> bool:
    """Whether it is no status and no endpoints: how often these are written hangs on how many events fall together."""
    return not line[2].endswith("/status") and line[2].partition(".")[0] not in ("endpoints", "endpointslices")


def table(found: list[Agreement]) -> Iterator[str]:
    """The table of docs/plan.md."""
    yield "| scenario | writes that agree | only the Go manager | only the plan | agreement |"
    yield "| --- | --- | --- | --- | --- |"
    for one in found:
        counts = len(one.both), len(one.missed), len(one.added)
        yield f"| {one.name} | {counts[0]} | {counts[1]} | {counts[2]} | {one.share:.0%} |"
    both, missed, added = (sum(len(part) for part in parts) for parts in zip(*_parts(found), strict=True))
    yield f"| all {len(found)} | {both} | {missed} | {added} | {both / (both + missed + added):.1%} |"
    exact = [line for one in found for line in one.both if is_exact(line)]
    same = [line for one in found for line in one.both - one.other.keys() if is_exact(line)]
    yield ""
    yield f"Of {len(exact)} lines that are of neither a status nor endpoints, {len(same)} agree in number, too."


def _parts(found: list[Agreement]) -> Iterator[tuple[frozenset[Line], frozenset[Line], frozenset[Line]]]:
    for one in found:
        yield one.both, one.missed, one.added


BEGIN, END = "<!-- agreement -->", "<!-- /agreement -->"


def main(arguments: list[str]) -> None:
    names = [word for word in arguments if not word.startswith("-")]
    found = [compare(one) for one in recorded() if not names or one.name in names]
    for one in found:
        print(f"{one.name}: {one.share:.0%}")
        for sign, lines in (("-", one.missed), ("+", one.added)):
            for line in sorted(lines):
                print(f"  {sign} {' '.join(line)}")
        for line, (happened, planned) in sorted(one.other.items()):
            if is_exact(line):
                print(f"  = {' '.join(line)}: {happened} times, in the plan {planned}")
    print(f"{sum(len(o.both) for o in found)} of {sum(len(o.both) + len(o.missed) + len(o.added) for o in found)}")
    if "--write" in arguments:
        page = ROOT / "docs" / "plan.md"
        before, _, rest = page.read_text().partition(BEGIN)
        after = rest.partition(END)[2]
        page.write_text("\n".join([f"{before}{BEGIN}", "", *table(found), "", f"{END}{after}"]))


if __name__ == "__main__":
    main(sys.argv[1:])
