"""``kcm sandbox nodes``: adds, removes, fails and recovers the simulated nodes of a running sandbox."""

import asyncio
import sys
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence

import msgspec

from kcm_cli.cli import usage
from kcm_cli.cli.manager import fail
from kcm_cli.component.clock import LoopClock
from kcm_cli.component.flagset import Flag, FlagSet, not_utf8
from kcm_cli.component.value_types import BOOL, INT, STRING
from kcm_cli.rest import access
from kcm_cli.rest.client import Client
from kcm_cli.rest.command_client import client_of
from kcm_cli.rest.errors import AccessError, ApiError
from kcm_cli.rest.transport import TransportError
from kcm_cli.sandbox import kubeconfig
from kcm_cli.sandbox.nodes import commands, shape

FLAGS = FlagSet(
    (
        Flag("kubeconfig", STRING, "", "The sandbox's kubeconfig; without it KUBECONFIG or ~/.kube/config.", "Nodes"),
        Flag("count", INT, 1, "How many nodes to add where none is named.", "Nodes"),
        Flag("capacity", STRING, "", "Size of added nodes, such as cpu=8,memory=16Gi,pods=250.", "Nodes"),
        Flag("help", BOOL, False, "Show this text.", "Nodes", shorthand="h"),
    )
)
ABOUT = """kcm sandbox nodes changes the simulated nodes of a running sandbox.

Usage:
  kcm sandbox nodes add [NAME...] [--count N] [--capacity SIZE]
  kcm sandbox nodes remove NAME...
  kcm sandbox nodes fail NAME...      no heartbeats, and nothing happens to its pods
  kcm sandbox nodes recover NAME..."""

_Change = Callable[[Client, str], Awaitable[None]]
_CHANGES: dict[str, tuple[_Change, str]] = {
    "remove": (commands.remove, "removed"),
    "fail": (commands.fail, "failed"),
    "recover": (commands.recover, "recovered"),
}
VERBS = ("add", *_CHANGES)


class Order(msgspec.Struct, frozen=True):
    """The parsed command line."""

    verb: str
    names: tuple[str, ...]
    kubeconfig: str
    count: int
    capacity: str


def main(arguments: Sequence[str]) -> int:
    """Execute the command; returns the exit code."""
    parsed = FLAGS.parse(list(arguments))
    if parsed.values.get("help") or not (parsed.rest or parsed.problems):
        sys.stdout.write(usage.help_text(ABOUT, FLAGS))
        return 0
    verb, *names = parsed.rest or [""]
    values = FLAGS.values_of(parsed)
    count = values["count"]
    assert isinstance(count, int)
    order = Order(verb, tuple(names), str(values["kubeconfig"]), count, str(values["capacity"]))
    problems = [*parsed.problems, *not_utf8(parsed, ("kubeconfig",)), *_problems(order, parsed.values)]
    if problems:
        return fail(problems)
    try:
        return asyncio.run(_run(order))
    except (ApiError, commands.NotSimulated) as error:
        return fail([str(error)])
    except AccessError as error:
        return fail([f"{error} (--kubeconfig names that of the sandbox)"])
    except TransportError as error:
        return fail([f"{error} (does the sandbox run?)"])


def _problems(order: Order, given: Mapping[str, object]) -> Iterator[str]:
    if order.verb == "add":
        if order.names and "count" in given:
            yield "--count: it is for nodes that are not named"
        if order.count < 1:
            yield f"--count: {order.count} is less than one"
        for part in shape.unreadable(order.capacity):
            yield f'--capacity: "{part}" is no size such as cpu=8 or memory=16Gi'
    elif order.verb not in _CHANGES:
        yield f'unknown command "{order.verb}": add, remove, fail or recover'
    else:
        if not order.names:
            yield f"{order.verb}: name a node"
        yield from (f"--{flag}: it is for add" for flag in ("count", "capacity") if flag in given)


async def _run(order: Order) -> int:
    clock = LoopClock()
    found = await access.load(path=order.kubeconfig or kubeconfig.usual(), master="", clock=clock)
    async with client_of(found, clock, "sandbox-nodes", writes=True) as client:
        await _carry_out(client, order)
    return 0


async def _carry_out(client: Client, order: Order) -> None:
    if order.verb == "add":
        names = order.names or await commands.add_some(client, order.count, capacity=order.capacity)
        for name in order.names:
            await commands.add(client, name, capacity=order.capacity)
        for name in names:
            sys.stdout.write(f"node/{name} added\n")
        return
    change, done = _CHANGES[order.verb]
    for name in order.names:
        await change(client, name)
        sys.stdout.write(f"node/{name} {done}\n")
