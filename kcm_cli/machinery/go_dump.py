"""The dump of a pod template, of which its hash is computed.

It contains every field of every Go type with its type, absent ones as zero values, so the table of types
(``machinery.go_types``) is part of the format: ``(v1.PodTemplateSpec){ObjectMeta:(v1.ObjectMeta){Name:(string) …``.
Empty lists and maps count as absent, as they are after the API server has stored them.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from functools import cache

from kcm_cli.machinery import go_types
from kcm_cli.machinery.codec import Doc
from kcm_cli.machinery.quantity import Held, parse_held
from kcm_cli.machinery.times import parse_time

_NIL = "<nil>"
_EMPTY: Doc = {}
_WORD = 2**64
_UNIX_TO_INTERNAL = 62135596800

_map_type = re.compile(r"map\[([^]]+)\](.+)").fullmatch

Printer = Callable[[object], str]


def dump_pod_template(template: Doc) -> str:
    """The dump of a v1.PodTemplateSpec. Raises FormatError for a malformed quantity or time."""
    return _typed("v1.PodTemplateSpec")(template)


@cache
def _typed(type_: str) -> Printer:
    """A printer of a value with its type."""
    if type_.startswith("*"):
        body = _body(type_[1:])
        return lambda value: f"({type_}){_NIL if value is None else body(value)}"
    body = _body(type_)
    return lambda value: f"({type_}){body(value)}"


@cache
def _body(type_: str) -> Printer:
    """A printer of a value without its type."""
    type_ = go_types.aliases().get(type_, type_)
    if special := _SPECIAL.get(type_):
        return special
    if type_.startswith("[]"):
        return _list(_body(type_[2:]))
    if match := _map_type(type_):
        return _map(_body(match[2]))
    return _struct(go_types.structs()[type_])


def _list(body: Printer) -> Printer:
    def show(value: object) -> str:
        return f"[{' '.join(map(body, value))}]" if isinstance(value, list) and value else _NIL

    return show


def _map(body: Printer) -> Printer:
    def show(value: object) -> str:
        if not isinstance(value, dict) or not value:
            return _NIL
        return f"map[{' '.join(f'{key}:{body(value[key])}' for key in sorted(value))}]"

    return show


def _struct(declared: Iterable[tuple[str, str, str]]) -> Printer:
    fields = [(name, json, _typed(type_)) for name, json, type_ in declared]

    def show(value: object) -> str:
        document = value if isinstance(value, dict) else _EMPTY
        shown = (f"{name}:{printer(document if json == '.' else document.get(json))}" for name, json, printer in fields)
        return f"{{{' '.join(shown)}}}"

    return show


def _string(value: object) -> str:
    return value if isinstance(value, str) else ""


def _number(value: object) -> str:
    return str(int(value)) if isinstance(value, (int, float)) else "0"


def _bool(value: object) -> str:
    return "true" if value is True else "false"


def _int_or_string(value: object) -> str:
    kind, number, text = (1, 0, value) if isinstance(value, str) else (0, _number(value), "")
    return f"{{Type:(intstr.Type){kind} IntVal:(int32){number} StrVal:(string){text}}}"


def _time(value: object) -> str:
    seconds = 0
    if isinstance(value, str):
        seconds = int(parse_time(value).timestamp()) + _UNIX_TO_INTERNAL
    return f"{{Time:(time.Time){{wall:(uint64)0 ext:(int64){seconds} loc:(*time.Location){_NIL}}}}}"


def _fields_v1(_: object) -> str:
    return f"{{Raw:([]uint8){_NIL}}}"


def _quantity(value: object) -> str:
    held = parse_held(str(value)) if value is not None else None
    amount = "value:(int64)0 scale:(resource.Scale)0"
    decimal = _NIL
    if held is not None and held.big:
        decimal = _decimal(held)
    elif held is not None:
        amount = f"value:(int64){held.amount} scale:(resource.Scale){held.scale}"
    text, format_ = (held.text, held.format.value) if held is not None else ("", "")
    return (
        f"{{i:(resource.int64Amount){{{amount}}} d:(resource.infDecAmount){{Dec:(*inf.Dec){decimal}}} "
        f"s:(string){text} Format:(resource.Format){format_}}}"
    )


def _decimal(held: Held) -> str:
    words, left = [], abs(held.amount)
    while left:
        left, word = divmod(left, _WORD)
        words.append(str(word))
    digits = f"[{' '.join(words)}]" if words else _NIL
    number = f"{{neg:(bool){_bool(held.amount < 0)} abs:(big.nat){digits}}}"
    return f"{{unscaled:(big.Int){number} scale:(inf.Scale){-held.scale}}}"


_SPECIAL: Mapping[str, Printer] = {
    "string": _string,
    "bool": _bool,
    "int32": _number,
    "int64": _number,
    "resource.Quantity": _quantity,
    "intstr.IntOrString": _int_or_string,
    "v1.Time": _time,
    "v1.FieldsV1": _fields_v1,
}
