"""Whether the time of a pattern of ``re`` grows faster than its text, decided by its structure.

The pattern becomes an automaton of its positions (Glushkov's). Where no match is found in the end, each way to read the
text is tried: the time grows at least with its square if two loops can read the same characters, one loop after the
other. A pattern that is searched begins with a loop of its own, since each character may be the start of a match.
Repetitions of very many times count as unbounded ones.

The criterion is that of A. Weber and H. Seidl, "On the degree of ambiguity of finite automata" (1991).
"""

import re
import warnings
from collections import Counter, deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from re import _constants as sre  # type: ignore[attr-defined]
from re import _parser  # type: ignore[attr-defined]
from typing import Any

SEARCHING = frozenset({"search", "finditer", "findall", "sub", "subn", "split"})
_FEW = 100
"""The most positions to which a repetition is unrolled."""
_LOOPS = (sre.MAX_REPEAT, sre.MIN_REPEAT, sre.POSSESSIVE_REPEAT)
_READING = (sre.LITERAL, sre.NOT_LITERAL, sre.ANY, sre.IN)
_SAMPLES = "aZzAeE09_ \n\t\r\x00-é١ſK"
_CATEGORIES = {
    sre.CATEGORY_DIGIT: r"\d",
    sre.CATEGORY_NOT_DIGIT: r"\D",
    sre.CATEGORY_SPACE: r"\s",
    sre.CATEGORY_NOT_SPACE: r"\S",
    sre.CATEGORY_WORD: r"\w",
    sre.CATEGORY_NOT_WORD: r"\W",
}


@dataclass
class _Part:
    """A part of a pattern: the positions at which it begins and ends, each with the number of ways to it."""

    nullable: bool = True
    first: Counter[int] = field(default_factory=Counter)
    last: Counter[int] = field(default_factory=Counter)


class _Automaton:
    def __init__(self, pattern: str | bytes, flags: int) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            parsed = _parser.parse(pattern, flags)
        self.flags = parsed.state.flags
        self.text = isinstance(pattern, str)
        self.alphabet = self._letters(parsed)
        self.reads: list[frozenset[str]] = []
        self.atomic: list[frozenset[int]] = []
        self.follow: list[Counter[int]] = []
        self.looks: list[Any] = []
        self.back_references = False
        self.anchored = False
        self.edge = False
        self.guard: frozenset[str] = frozenset()
        """What does not stand before a match."""
        self._groups: tuple[int, ...] = ()
        self._group = 0
        self._greedy: set[int] = set()
        """Loops over one set of characters that give nothing back: what comes after them begins with another one."""
        self.whole = self._sequence(parsed)
        words = self._reads(sre.IN, [(sre.CATEGORY, sre.CATEGORY_WORD)])
        if self.edge and all(self.reads[one] <= words for one in self.whole.first):
            self.guard |= words

    # --- characters

    def _letters(self, parsed: Any) -> str:
        found = set(_SAMPLES)
        for op, value in _operations(parsed):
            if op in (sre.LITERAL, sre.NOT_LITERAL):
                found |= _around(value, value)
            elif op is sre.RANGE:
                found |= _around(*value)
        if not self.text:
            found = {char for char in found if char < "\u0100"}
        return "".join(sorted(found))

    def _reads(self, op: Any, value: Any) -> frozenset[str]:
        return frozenset(char for char in self.alphabet if self._matches(op, value, char))

    def _matches(self, op: Any, value: Any, char: str) -> bool:
        if op is sre.ANY:
            return bool(self.flags & re.DOTALL) or char != "\n"
        cases = {char, char.lower(), char.upper()} if self.flags & re.IGNORECASE else {char}
        if op is sre.NOT_LITERAL:
            return chr(value) not in cases
        if op is sre.LITERAL:
            return chr(value) in cases
        negated = bool(value) and value[0][0] is sre.NEGATE
        return negated != any(self._in(item, one) for item in value[negated:] for one in cases)

    def _in(self, item: tuple[Any, Any], char: str) -> bool:
        op, value = item
        if op is sre.RANGE:
            return bool(value[0] <= ord(char) <= value[1])
        if op is sre.LITERAL:
            return ord(char) == int(value)
        flags = re.ASCII if self.flags & re.ASCII or not self.text else 0
        return re.match(_CATEGORIES[value], char, flags) is not None

    # --- structure

    def _position(self, reads: frozenset[str]) -> _Part:
        self.reads.append(reads)
        self.atomic.append(frozenset(self._groups))
        self.follow.append(Counter())
        here = len(self.reads) - 1
        return _Part(False, Counter({here: 1}), Counter({here: 1}))

    def _join(self, left: _Part, right: _Part) -> _Part:
        self._connect(left, right)
        first = left.first + right.first if left.nullable else left.first
        last = left.last + right.last if right.nullable else right.last
        return _Part(left.nullable and right.nullable, first, last)

    def _connect(self, left: _Part, right: _Part) -> None:
        for one, ways in left.last.items():
            for other, more in right.first.items():
                if not (one in self._greedy and self.reads[other] <= self.reads[one]):
                    self.follow[one][other] += ways * more

    def _sequence(self, items: Iterable[tuple[Any, Any]]) -> _Part:
        part = _Part()
        for op, value in items:
            part = self._join(part, self._part(op, value))
        return part

    def _part(self, op: Any, value: Any) -> _Part:
        if op in (sre.LITERAL, sre.NOT_LITERAL, sre.ANY, sre.IN):
            return self._position(self._reads(op, value))
        if op is sre.SUBPATTERN:
            outer, self.flags = self.flags, self.flags & ~value[2] | value[1]
            part = self._sequence(value[3])
            self.flags = outer
            return part
        if op is sre.BRANCH:
            return self._branch(self._sequence(one) for one in value[1])
        if op in (sre.MAX_REPEAT, sre.MIN_REPEAT):
            return self._repeat(*value)
        if op is sre.POSSESSIVE_REPEAT:
            part = self._in_group(lambda: self._repeat(*value))
            if len(part.last) == 1 and part.first == part.last:
                self._greedy |= set(part.last)
            return part
        if op is sre.ATOMIC_GROUP:
            return self._in_group(lambda: self._sequence(value))
        if op is sre.AT and value in (sre.AT_END, sre.AT_END_STRING):
            return self._position(frozenset())  # what follows is read by nothing
        self._without_width(op, value)
        return _Part()

    def _without_width(self, op: Any, value: Any) -> None:
        """What reads nothing."""
        if op in (sre.ASSERT, sre.ASSERT_NOT):
            if value[0] > 0:
                self.looks.append(value[1])
            elif op is sre.ASSERT_NOT and not self.reads and len(value[1]) == 1 and value[1][0][0] in _READING:
                self.guard |= self._reads(*value[1][0])
        elif op is sre.AT:
            self.edge |= value is sre.AT_BOUNDARY and not self.reads
            once = value is sre.AT_BEGINNING and not self.flags & re.MULTILINE
            self.anchored |= value is sre.AT_BEGINNING_STRING or once
        else:
            assert op in (sre.GROUPREF, sre.GROUPREF_EXISTS), op
            self.back_references = True

    def _branch(self, parts: Iterable[_Part]) -> _Part:
        found = list(parts)
        return _Part(
            any(part.nullable for part in found),
            sum((part.first for part in found), Counter()),
            sum((part.last for part in found), Counter()),
        )

    def _repeat(self, least: int, most: Any, body: Any) -> _Part:
        size = 1 + sum(op in _READING for op, _ in _operations(body))
        many = most is sre.MAXREPEAT or most * size > _FEW
        part = _Part()
        for _ in range(min(least, _FEW // size) - (1 if many and least else 0)):
            part = self._join(part, self._sequence(body))
        if many:
            loop = self._sequence(body)
            self._connect(loop, loop)
            return self._join(part, _Part(loop.nullable or not least, loop.first, loop.last))
        rest = _Part()
        for _ in range(most - least):
            one = self._join(self._sequence(body), rest)
            rest = _Part(True, one.first, one.last)
        return self._join(part, rest)

    def _in_group(self, build: Any) -> _Part:
        self._group += 1
        outer, self._groups = self._groups, (*self._groups, self._group)
        part: _Part = build()
        self._groups = outer
        return part


def _around(first: int, last: int) -> set[str]:
    return {chr(code) for code in (first - 1, first, last, last + 1) if 0 <= code < 0x110000}


def _operations(parsed: Any) -> Iterator[tuple[Any, Any]]:
    """All operations of a parsed pattern, nested ones too."""
    if isinstance(parsed, _parser.SubPattern | list | tuple):
        items = list(parsed)
        if len(items) == 2 and isinstance(items[0], type(sre.LITERAL)):  # an operation and its value
            yield items[0], items[1]
        for item in items:
            yield from _operations(item)


def fault(pattern: str | bytes, flags: int = 0, method: str = "search") -> str:
    """Why the time may grow faster than the text; empty if it does not. method: of the compiled pattern."""
    automaton = _Automaton(pattern, flags)
    if automaton.back_references:
        return "a reference to a group: what it reads is not bounded"
    searched = method in SEARCHING and not automaton.anchored
    for look in automaton.looks:
        if searched and any(op in _LOOPS and value[1] > _FEW for op, value in _operations(look)):
            return "a look ahead over any distance from each position"
    if method == "fullmatch":
        automaton.whole = automaton._join(automaton.whole, automaton._position(frozenset()))
    return _ambiguous(automaton, searched)


def _ambiguous(automaton: _Automaton, searched: bool) -> str:
    follow = [dict(one) for one in automaton.follow]
    reads = list(automaton.reads)
    reach = _reachable(follow)
    loops = [one for one in range(len(reads)) if one in reach[one]]
    for one in loops:
        for other, ways in follow[one].items():
            if ways > 1 and one in reach[other]:
                return f"a loop in a loop, both over {_shown(reads[other])}"
    starts = loops
    if searched:
        before, guarded = len(reads), len(reads) + 1
        reads += [frozenset(automaton.alphabet) - automaton.guard, automaton.guard]
        follow += [{**automaton.whole.first, before: 1, guarded: 1}, {before: 1, guarded: 1}]
        reach = _reachable(follow)
        starts = [before, guarded, *loops]
    settled = _settled(follow, loops, set(automaton.whole.last))
    for one in starts:
        for other in loops:
            if one == other or other not in reach[one] or other in settled or one in settled:
                continue
            if one < len(automaton.atomic) and automaton.atomic[one] - automaton.atomic[other]:
                continue  # once it is left, it is not entered again
            text = _pumped(follow, reads, reach, one, other)
            if text:
                where = "any start" if one >= len(automaton.reads) else f"a loop over {_shown(reads[one])}"
                return f"{where} and a loop over {_shown(reads[other])} both read {text!r}"
    return ""


def _settled(follow: list[dict[int, int]], loops: list[int], accepting: set[int]) -> set[int]:
    """The loops in which a match may end again and again, so that none is read in vain."""
    others = [
        {} if one in accepting else {at: 1 for at in found if at not in accepting} for one, found in enumerate(follow)
    ]
    reach = _reachable(others)
    return {one for one in loops if one not in reach[one]}


def _pumped(
    follow: list[dict[int, int]], reads: list[frozenset[str]], reach: list[set[int]], one: int, other: int
) -> str:
    """A text that leads from one to itself, from one to the other, and from the other to itself; empty if none does."""
    begin, goal = (one, one, other), (one, other, other)
    came: dict[tuple[int, int, int], tuple[tuple[int, int, int], str]] = {}
    queue = deque([begin])
    while queue:
        state = queue.popleft()
        for first in follow[state[0]]:
            if one not in reach[first] and first != one:
                continue
            for second in follow[state[1]]:
                common = reads[first] & reads[second]
                if not common or (other not in reach[second] and second != other):
                    continue
                for third in follow[state[2]]:
                    shared = common & reads[third]
                    if not shared or (other not in reach[third] and third != other):
                        continue
                    after = (first, second, third)
                    if after not in came:
                        came[after] = state, min(shared)
                        if after == goal:
                            return _text(came, begin, goal)
                        queue.append(after)
    return ""


def _text(came: dict[tuple[int, int, int], tuple[tuple[int, int, int], str]], begin: Any, state: Any) -> str:
    text = ""
    while True:
        state, char = came[state]
        text = char + text
        if state == begin:
            return text


def _reachable(follow: list[dict[int, int]]) -> list[set[int]]:
    """The positions that come after each one, in one or more steps."""
    found = []
    for one in range(len(follow)):
        seen: set[int] = set()
        queue = list(follow[one])
        while queue:
            other = queue.pop()
            if other not in seen:
                seen.add(other)
                queue.extend(follow[other])
        found.append(seen)
    return found


def _shown(chars: frozenset[str]) -> str:
    return repr("".join(sorted(chars))[:12])


def repeats_groups_possessively(text: str | bytes, flags: int = 0) -> bool:
    """Whether a possessive repetition is of more than one character, or there is an atomic group.

    Python 3.11.0 to 3.11.4 match these wrongly, and then slowly (python/cpython#106052).
    """
    return _is_atomic(_parser.parse(text, flags))


def _is_atomic(items: Any) -> bool:
    for op, value in items:
        if op is sre.ATOMIC_GROUP:
            return True
        if op is sre.POSSESSIVE_REPEAT and (len(value[2]) != 1 or value[2][0][0] not in _READING):
            return True
        if any(map(_is_atomic, _bodies(op, value))):
            return True
    return False


def _bodies(op: Any, value: Any) -> Iterator[Any]:
    if op in _LOOPS:
        yield value[2]
    elif op is sre.SUBPATTERN:
        yield value[3]
    elif op is sre.BRANCH:
        yield from value[1]
    elif op in (sre.ASSERT, sre.ASSERT_NOT):
        yield value[1]
