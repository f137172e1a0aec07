"""Formats changes and times as text."""

from collections.abc import Mapping, Sequence

from kcm_cli.machinery.documents import nested_str
from kcm_cli.machinery.durations import format_duration
from kcm_cli.plan.changes import (
    AddNode,
    Apply,
    Change,
    Delete,
    Drain,
    FailNode,
    Metric,
    RemoveNode,
    Scale,
    SetImage,
)


def describe_changes(changes: Sequence[Change], remarks: Mapping[int, str]) -> tuple[str, ...]:
    """One line for each change. remarks: how they were made, by their number."""
    return tuple(
        f"{_describe(change)}{f' ({remarks[number]})' if remarks.get(number) else ''}"
        for number, change in enumerate(changes)
    )


def _describe(change: Change) -> str:
    match change:
        case Apply(doc=doc):
            name, space = (nested_str(doc, "metadata", field) for field in ("name", "namespace"))
            return f"apply {doc.get('kind')} {f'{space}/{name}' if space else name}"
        case Drain(node=node):
            return f"drain node {node}"
        case FailNode(node=node):
            return f"fail node {node}"
        case RemoveNode(node=node):
            return f"remove node {node}"
        case AddNode(like=like, count=count):
            return f"add {count} node{'s' if count > 1 else ''} like {like}"
        case SetImage(target=target, image=image, container=container):
            return f"set image {target} {f'{container}=' if container else ''}{image}"
        case Scale(target=target, replicas=replicas):
            return f"scale {target} to {replicas}"
        case Delete(target=target):
            return f"delete {target}"
        case Metric():
            shown = f"{change.percent:g}%" if change.percent is not None else f"{change.value / 1000:g}"
            where = f"{change.namespace}/{change.name}" if change.namespace else change.name
            return f"{change.metric} of {change.kind} {where} is {shown}"


def counted(count: int, noun: str) -> str:
    """``1 pod``, ``3 pods``."""
    return f"{count} {noun}{'' if count == 1 else 's'}"


def clock(seconds: float) -> str:
    """``+00:42``, ``+1:02:03``."""
    whole = int(seconds)
    hours, minutes, rest = whole // 3600, whole // 60 % 60, whole % 60
    return f"+{hours}:{minutes:02}:{rest:02}" if hours else f"+{minutes:02}:{rest:02}"


def span(seconds: float) -> str:
    """``1h``, ``10m``, ``1h30m``."""
    text = format_duration(seconds)
    for empty in ("0s", "0m"):
        if text.endswith(empty) and text[: -len(empty)].endswith(("h", "m")):
            text = text[: -len(empty)]
    return text
