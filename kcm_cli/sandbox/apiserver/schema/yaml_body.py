"""Parses YAML as the server does, with its rules for scalars; keys become strings, and repeated ones are reported.

Values are built from the parser's events without recursion, with bounds for nesting and aliases.

upstream: sigs.k8s.io/yaml, gopkg.in/yaml.v2 decode.go
"""

import re
from collections.abc import Iterable, Iterator

import msgspec
import yaml

from kcm_cli.machinery.patches import copy
from kcm_cli.machinery.quoting import quote
from kcm_cli.sandbox.apiserver.schema.gojson import MAX_DEPTH
from kcm_cli.sandbox.apiserver.schema.yaml_scalars import BadScalar, json_value, key_text, plain, tagged

_MERGE = "<<"
_ESCAPED_SLASH = re.compile(r"(?:[^\\]|\\[^/])*\\/", re.DOTALL)
_FREE_ALIASES, _FREE_NODES = 100, 1000
_FEW, _MANY = 400_000, 4_000_000
_TOO_DEEP = f"exceeded max depth of {MAX_DEPTH}"
_PARSER_TOO_DEEP = "exceeded maximum nesting depth"
"""What PyYAML says since 6.0.4, whose scanner is ahead of its events."""
_Loader: type[yaml.SafeLoader] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class YamlError(Exception):
    """The text is not YAML, or cannot be converted to JSON. The message is the server's."""


def load(data: bytes) -> tuple[object, list[str]]:
    """The value of the first document, and the repeated keys. Raises YamlError."""
    builder = next(_documents(data), _Builder(""))
    return builder.value, builder.repeated


def load_all(data: bytes) -> Iterator[object]:
    """The values of all documents. Raises YamlError."""
    return (builder.value for builder in _documents(data))


def _documents(data: bytes) -> Iterator["_Builder"]:
    text = _text(data) if b"\\/" in data else ""
    builder = _Builder(text)
    try:
        for event in yaml.parse(data, Loader=_Loader):
            builder.take(event)
            if isinstance(event, yaml.DocumentEndEvent):
                yield builder
                builder = _Builder(text)
    except BadScalar as error:
        raise YamlError(str(error)) from None
    except yaml.reader.ReaderError as error:
        raise YamlError(f"yaml: {error.reason}") from None
    except yaml.MarkedYAMLError as error:
        problem = _TOO_DEEP if error.problem == _PARSER_TOO_DEEP else error.problem
        raise YamlError(f"yaml: {_where(error)}{problem}") from None


def _text(data: bytes) -> str:
    """The characters that the parser's marks count."""
    return data.decode("utf-8", "replace").removeprefix("\ufeff")


def _where(error: yaml.MarkedYAMLError) -> str:
    """The line as upstream counts it, which depends on the error."""
    line = error.problem_mark.line if error.problem_mark is not None else 0
    if line:
        line += isinstance(error, yaml.scanner.ScannerError)
    elif error.context_mark is not None:
        line = error.context_mark.line
    return f"line {line}: " if line else ""


class _Part(msgspec.Struct, frozen=True):
    """A value. ``size``: its number of nodes, itself and aliases included; ``depth``: its nesting of lists and maps."""

    value: object
    size: int = 1
    depth: int = 0


class _Open(msgspec.Struct):
    """A list or map that has not ended. ``key``: that of a map's next value; ``line``: the key's; ``bare``: it is no
    string; ``merges``: it is ``<<``; ``refused``: it cannot be a key; ``is_key``: this list or map is itself in the
    place of a key."""

    value: dict[str, object] | list[object]
    anchor: str | None
    size: int = 1
    depth: int = 1
    key: str | None = None
    line: int = 0
    bare: bool = False
    merges: bool = False
    refused: bool = False
    is_key: bool = False


class _Builder(msgspec.Struct):
    """``text``: the document if it may have an escaped slash, which upstream's parser refuses; else empty."""

    text: str
    value: object = None
    repeated: list[str] = msgspec.field(default_factory=list)
    _open: list[_Open] = msgspec.field(default_factory=list)
    _anchors: dict[str, _Part] = msgspec.field(default_factory=dict)
    _nodes: int = 1  # the document itself
    _aliased: int = 0

    def take(self, event: yaml.Event) -> None:
        match event:
            case yaml.ScalarEvent():
                self._scalar(event)
            case yaml.AliasEvent():
                self._alias(event)
            case yaml.MappingStartEvent():
                self._begin({}, event)
            case yaml.SequenceStartEvent():
                self._begin([], event)
            case yaml.MappingEndEvent() | yaml.SequenceEndEvent():
                self._end(_line(event))

    def _scalar(self, event: yaml.ScalarEvent) -> None:
        value: object = event.value
        self._nodes += 1
        if self.text and event.style == '"':
            self._check_escapes(event)
        if event.tag not in (None, "!"):
            value = tagged(event.tag, event.value)
        elif event.implicit[0]:
            value = plain(event.value)
        if self._awaits_key():
            self._set_key(value, _line(event))
            self._open[-1].merges = bool(event.implicit[0]) and event.value == _MERGE
            if event.anchor is not None:
                self._keep(event.anchor, _Part(json_value(value)))
            return
        part = _Part(json_value(value))
        self._keep(event.anchor, part)
        self._add(part, _line(event))

    def _check_escapes(self, event: yaml.ScalarEvent) -> None:
        start, end = event.start_mark, event.end_mark
        if start is None or end is None:
            return
        found = _ESCAPED_SLASH.match(self.text[start.index : end.index])
        if found:
            line = start.line + found[0].count("\n")
            raise YamlError(f"yaml: {f'line {line + 1}: ' if line else ''}found unknown escape character")

    def _alias(self, event: yaml.AliasEvent) -> None:
        name, line = str(event.anchor), _line(event)
        if any(frame.anchor == name for frame in self._open):
            raise YamlError(f"yaml: anchor '{name}' value contains itself")
        part = self._anchors.get(name)
        if part is None:
            raise YamlError(f"yaml: unknown anchor '{name}' referenced")
        self._aliased += part.size
        self._nodes += 1 + part.size
        self._check_aliases()
        if self._awaits_key():
            self._set_key(part.value, line)
        else:
            self._check_depth(part.depth, line)
            self._add(_Part(copy(part.value), 1 + part.size, part.depth), line)

    def _begin(self, value: dict[str, object] | list[object], event: yaml.CollectionStartEvent) -> None:
        self._nodes += 1
        self._check_depth(1, _line(event))
        self._open.append(_Open(value, event.anchor, is_key=self._awaits_key()))

    def _end(self, line: int) -> None:
        done = self._open.pop()
        if done.is_key:
            raise YamlError(f"yaml: invalid map key: {_go(done.value)}")
        part = _Part(done.value, done.size, done.depth)
        self._keep(done.anchor, part)
        self._add(part, line)

    def _awaits_key(self) -> bool:
        return bool(self._open) and isinstance(self._open[-1].value, dict) and self._open[-1].key is None

    def _set_key(self, value: object, line: int) -> None:
        if isinstance(value, list | dict):
            raise YamlError(f"yaml: invalid map key: {_go(value)}")
        frame, text = self._open[-1], key_text(value)
        frame.key, frame.line, frame.merges, frame.refused = text or "", line, False, text is None
        frame.bare = not isinstance(value, str)
        frame.size += 1

    def _add(self, part: _Part, line: int) -> None:
        """Add a value to the innermost list or map."""
        if not self._open:
            self.value = part.value
            return
        frame = self._open[-1]
        frame.size += part.size
        frame.depth = max(frame.depth, part.depth + 1)
        if isinstance(frame.value, list):
            frame.value.append(part.value)
            return
        key, frame.key = frame.key or "", None
        if frame.refused:
            raise YamlError(f"unsupported map key of type: %!s(<nil>), key: <nil>, value: {_go(part.value)}")
        for name, item in _merged(part.value) if frame.merges else ((key, part.value),):
            if name in frame.value:
                shown = name if frame.bare else quote(name)
                self.repeated.append(f"line {frame.line + 1}: key {shown} already set in map")
            frame.value[name] = item

    def _keep(self, anchor: str | None, part: _Part) -> None:
        if anchor is not None:
            self._anchors[anchor] = part

    def _check_depth(self, more: int, line: int) -> None:
        if len(self._open) + more > MAX_DEPTH:
            raise YamlError(f"yaml: {f'line {line + 1}: ' if line else ''}{_TOO_DEEP}")

    def _check_aliases(self) -> None:
        """Refuse documents that consist mostly of the expansion of aliases."""
        if self._aliased <= _FREE_ALIASES or self._nodes <= _FREE_NODES:
            return
        above = min(max(self._nodes - _FEW, 0) / (_MANY - _FEW), 1.0)
        if self._aliased / self._nodes > 0.99 - 0.89 * above:
            raise YamlError("yaml: document contains excessive aliasing")


def _line(event: yaml.Event) -> int:
    return event.start_mark.line if event.start_mark is not None else 0


def _merged(value: object) -> Iterable[tuple[str, object]]:
    """The entries that ``<<`` adds; of several maps the first wins."""
    maps = [value] if isinstance(value, dict) else list(reversed(value)) if isinstance(value, list) else [None]
    found: dict[str, object] = {}
    for one in maps:
        if not isinstance(one, dict):
            raise YamlError("yaml: map merge requires map or sequence of maps as the value")
        found.update(one)
    return found.items()


def _go(value: object) -> str:
    """A value as Go's %#v prints it."""
    if isinstance(value, list):
        return "[]interface {}{" + ", ".join(_go(item) for item in value) + "}"
    if isinstance(value, dict):
        pairs = (f"{quote(key)}:{_go(item)}" for key, item in value.items())
        return "map[interface {}]interface {}{" + ", ".join(pairs) + "}"
    if value is None:
        return "interface {}(nil)"
    return quote(value) if isinstance(value, str) else str(value).lower()
