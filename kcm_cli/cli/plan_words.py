"""Parses the values of ``kcm plan``'s flags."""

from msgspec.structs import replace

from kcm_cli.api.short_names import kind_of
from kcm_cli.component.flag_values import split_list
from kcm_cli.component.value_types import STRINGS
from kcm_cli.machinery.errors import FormatError
from kcm_cli.machinery.integers import parse_int64
from kcm_cli.machinery.quantity import parse
from kcm_cli.plan.changes import Metric, Scale, SetImage, Target, is_selector


class BadWord(ValueError):
    """A flag has an invalid value. The text has the flag's name and the reason."""


def _nodes(text: str) -> tuple[str, ...]:
    return (text,) if is_selector(text) else split_list(text)


NODES = replace(STRINGS, parse=_nodes)
"""Names of nodes, with commas between them, or one label selector, whose commas mean *and*."""


def target(word: str, flag: str) -> Target:
    """Parse ``deploy/web``, or ``shop/deploy/web`` with its namespace."""
    parts = word.split("/")
    if len(parts) not in (2, 3) or not all(parts):
        raise BadWord(f'{flag}: "{word}" is not KIND/NAME')
    return Target(parts[-2], parts[-1], parts[0] if len(parts) == 3 else "")


def set_image(word: str) -> SetImage:
    """Parse ``deploy/web=web:2``, or ``deploy/web=app=web:2`` for one of several containers."""
    name, equals, rest = word.partition("=")
    container, second, image = rest.rpartition("=")
    if not equals or not image or (second and not container):
        raise BadWord(f'--set-image: "{word}" is not KIND/NAME=[CONTAINER=]IMAGE')
    return SetImage(target(name, "--set-image"), image, container)


def scaled(word: str) -> Scale:
    """Parse ``deploy/web=50``."""
    name, _, count = word.partition("=")
    replicas = _count(count)
    if replicas is None or replicas > 2**31 - 1:
        raise BadWord(f'--scale: "{word}" is not KIND/NAME=REPLICAS')
    return Scale(target(name, "--scale"), replicas)


def node_count(word: str) -> tuple[str, int]:
    """Parse ``node-1`` or ``node-1=3``."""
    name, equals, text = word.partition("=")
    count = _count(text) if equals else 1
    if count is None or not 1 <= count <= 1000:
        raise BadWord(f'--add-node: "{word}" is not NAME or NAME=COUNT, up to 1000')
    return name, count


def _count(text: str) -> int | None:
    """The number without a sign; None if the text is none."""
    return parse_int64(text) if text.isascii() and text[:1].isdigit() else None


def metric(word: str, namespace: str) -> Metric:
    """Parse ``deploy/web=cpu:120%`` (of the pods' requests) or ``deploy/web=requests-per-second:50`` (per pod)."""
    name, _, rest = word.partition("=")
    metric_name, colon, value = rest.rpartition(":")
    if not colon or not metric_name or not value:
        raise BadWord(f'--metric: "{word}" is not KIND/NAME=METRIC:VALUE, such as deploy/web=cpu:120%')
    found = target(name, "--metric")
    kind = kind_of(found.kind)
    where = found.namespace or namespace, kind, found.name, metric_name
    try:
        if value.endswith("%"):
            percent = float(value[:-1])
            if not 0 <= percent <= 1e6:
                raise ValueError
            return Metric(*where, percent=percent)
        return Metric(*where, value=float(parse(value).milli_value()))
    except (ValueError, FormatError):
        raise BadWord(f'--metric: "{value}" is neither a percentage nor a quantity') from None
