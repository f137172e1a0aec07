"""What a log of ``go test -v`` says: each test's result, and which of them count as cases."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

_END = re.compile(r"\s*--- (PASS|FAIL|SKIP): (\S+) \(([\d.]+)s\)")
_BEGIN = re.compile(r"=== RUN\s+(\S+)")


@dataclass(frozen=True, slots=True)
class Case:
    """A test without subtests, or a subtest without further ones. seconds: -1 for one that did not end."""

    name: str
    result: str
    seconds: float


def cases(lines: Iterable[str]) -> list[Case]:
    """The cases of a log, in the order in which they began; one that did not end has failed."""
    ended: dict[str, Case] = {}
    begun: dict[str, None] = {}
    for line in lines:
        if end := _END.match(line):
            ended[end[2]] = Case(end[2], end[1], float(end[3]))
            begun.setdefault(end[2])
        elif begin := _BEGIN.match(line):
            begun.setdefault(begin[1])
    parents = {name.rsplit("/", 1)[0] for name in begun if "/" in name}
    return [ended.get(name, Case(name, "FAIL", -1.0)) for name in begun if name not in parents]


def table(found: Iterable[Case], not_applicable: Mapping[str, str]) -> tuple[list[str], int]:
    """Lines to print, and how many cases failed. ``not_applicable``: reasons by name of what was left out."""
    counts = dict.fromkeys(("PASS", "FAIL", "SKIP"), 0)
    lines = []
    for case in found:
        counts[case.result] += 1
        lines.append(f"{case.result} {case.name} ({'did not end' if case.seconds < 0 else f'{case.seconds:g} s'})")
    lines += [f"N/A  {name} ({reason})" for name, reason in not_applicable.items()]
    sums = [f"{count} {result}" for result, count in counts.items() if count]
    lines.append(f"cases: {', '.join(sums) or 'none'}")
    return lines, counts["FAIL"]


def skipping(names: Iterable[str]) -> str:
    """The regular expression for -test.skip that leaves out these tests."""
    return "|".join("/".join(f"^{re.escape(part)}$" for part in name.split("/")) for name in names)
