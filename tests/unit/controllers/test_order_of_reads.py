"""The order of the reads in a sync (docs/architecture.md): nothing that was read before an await decides after it."""

import ast
from collections.abc import Iterator
from functools import cache

from tests.kit.places import ROOT

FOLDER = ROOT / "kcm_cli" / "controllers"
READS = frozenset({"by_index", "list", "get", "values", "items", "find", "selected", "selecting"})
"""Methods of caches, of their indexes, and of what controllers remember."""
CLAIMS = frozenset({"claim", "claimable", "_claim"})

KEPT = {
    ("device_taint_eviction/controller.py", "_sync_pod", "eviction"): "the eviction that was carried out",
    ("device_taint_eviction/controller.py", "_sync_pod", "uid"): "compared with what is there afterwards",
    ("endpointslice_mirroring/controller.py", "_sync", "snapshot"): "only one of the two branches awaits",
    ("horizontal_pod_autoscaler/controller.py", "_read", "autoscalers"): "whether metrics are requested, as upstream",
    ("horizontal_pod_autoscaler/controller.py", "_read", "snapshot"): "only a sync of the same key changes the history",
    ("job/pod_groups.py", "group_of", "found"): "it is empty where something is awaited",
    ("node_lifecycle/controller.py", "check_nodes", "nodes"): "the nodes that the pass has looked at",
    ("persistentvolume_attach_detach/flex.py", "scan", "before"): "compared with what is there afterwards",
    ("persistentvolume_attach_detach/reconciler.py", "_detach", "decision"): "the need is looked up again after it",
    ("persistentvolume_attach_detach/reconciler.py", "_detach", "requeue_after_s"): "a time",
    ("persistentvolume_binder/recycler.py", "run", "problem"): "how the pod has ended, which does not change",
    ("pod_garbage_collector/controller.py", "_orphaned", "pods"): "those from before the node was found to be gone",
    ("root_ca_certificate_publisher/controller.py", "_publish", "action"): "a creation, or an update with a version",
    ("serviceaccount_token/controller.py", "sync_secret", "secret"): "it is written with its version or uid",
    ("shared/replicas.py", "sync", "pods"): "the number of terminating pods, each of whose changes queues the key",
}
"""Reads that are used after an await, and why this is right."""


@cache
def functions() -> tuple[tuple[str, ast.AsyncFunctionDef, frozenset[str]], ...]:
    """The coroutines of controllers, each with the methods of its class that return what they read from a cache."""
    return tuple(_functions())


def _functions() -> Iterator[tuple[str, ast.AsyncFunctionDef, frozenset[str]]]:
    for path in sorted(FOLDER.rglob("*.py")):
        tree = ast.parse(path.read_text())
        owners = {method: one for one in ast.walk(tree) if isinstance(one, ast.ClassDef) for method in one.body}
        readers = {one: frozenset(readers_of(one)) for one in set(owners.values())}
        for node in ast.walk(tree):
            if isinstance(node, ast.AsyncFunctionDef):
                owner = owners.get(node)
                yield path.relative_to(FOLDER).as_posix(), node, readers[owner] if owner else frozenset()


def readers_of(owner: ast.ClassDef) -> Iterator[str]:
    for method in owner.body:
        if isinstance(method, ast.FunctionDef | ast.AsyncFunctionDef):
            read = {name for name, value, _ in assignments(method) if of_cache(value, frozenset())}
            for node in ast.walk(method):
                if isinstance(node, ast.Return) and node.value is not None:
                    names = {one.id for one in ast.walk(node.value) if isinstance(one, ast.Name)}
                    if names & read or of_cache(node.value, frozenset()):
                        yield method.name


def of_cache(value: ast.expr, readers: frozenset[str]) -> bool:
    """Whether an expression reads a cache. An await of anything but a method that does so is none."""
    nodes = list(ast.walk(value))
    calls = [node.func for node in nodes if isinstance(node, ast.Call)]
    if any(isinstance(call, ast.Attribute) and call.attr in readers and is_self(call.value) for call in calls):
        return True
    if any(isinstance(node, ast.Await) for node in nodes):
        return False
    return any(
        (isinstance(call, ast.Name) and call.id == "claimable")
        or (isinstance(call, ast.Attribute) and call.attr in READS and "self." in ast.unparse(call.value))
        for call in calls
    )


def is_self(value: ast.expr) -> bool:
    return isinstance(value, ast.Name) and value.id == "self"


def is_subject(value: ast.expr, function: ast.AsyncFunctionDef) -> bool:
    """Whether an expression gets the object that the function is about, by its key. All that is written to it has its
    version or uid."""
    parameters = {one.arg for one in function.args.args} - {"self"}
    match value:
        case ast.Call(func=ast.Attribute(attr="get"), args=[ast.Name(id=name)]):
            return name in parameters
    return False


def assignments(function: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[tuple[str, ast.expr, int]]:
    for node in ast.walk(function):
        match node:
            case ast.Assign(targets=targets, value=value):
                pass
            case ast.AnnAssign(target=target, value=ast.expr() as value) | ast.NamedExpr(target=target, value=value):
                targets = [target]
            case _:
                continue
        pairs = [(targets[0], value)]
        if isinstance(targets[0], ast.Tuple) and isinstance(value, ast.Tuple):
            pairs = list(zip(targets[0].elts, value.elts, strict=True))
        for target, part in pairs:
            for name in ast.walk(target):
                if isinstance(name, ast.Name) and isinstance(name.ctx, ast.Store):
                    yield name.id, part, node.end_lineno or node.lineno


def stale(function: ast.AsyncFunctionDef, readers: frozenset[str] = frozenset()) -> Iterator[str]:
    """The variables that hold a read of a cache and are used after a later await."""
    known = list(assignments(function))
    awaits = [node for node in ast.walk(function) if isinstance(node, ast.Await | ast.AsyncFor | ast.AsyncWith)]
    uses = [node for node in ast.walk(function) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)]
    for name, value, line in known:
        if not of_cache(value, readers) or is_subject(value, function):
            continue
        again = min((other for known_as, _, other in known if known_as == name and other > line), default=10**9)
        ends = [await_.end_lineno or 0 for await_ in awaits if line < await_.lineno < again]
        if ends and any(use.id == name and min(ends) < use.lineno < again for use in uses):
            yield name


def test_nothing_that_was_read_before_an_await_is_used_after_it():
    found = {
        (path, function.name, name) for path, function, readers in functions() for name in stale(function, readers)
    }
    assert found == KEPT.keys(), "read it after the last await, or say in KEPT why it may be older"


def test_expectations_are_checked_before_the_children_are_read():
    """A child that comes in between is seen. The other way round it is missing, and expected no longer."""
    checked = []
    for path, function, _ in functions():
        calls = [node for node in ast.walk(function) if isinstance(node, ast.Call)]
        named = [(ast.unparse(call.func).rpartition(".")[2], call.lineno) for call in calls]
        satisfied = [line for name, line in named if name == "satisfied"]
        if satisfied:
            checked.append(path)
            awaits = [node.lineno for node in ast.walk(function) if isinstance(node, ast.Await)]
            children = [line for name, line in named if name in CLAIMS]
            assert satisfied[0] < min(awaits + children), (path, function.name)
    assert checked == ["daemonset/controller.py", "job/controller.py", "shared/replicas.py"]
