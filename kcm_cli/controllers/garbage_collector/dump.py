"""The graph in Graphviz DOT format, for /debug/controllers/garbage-collector-controller/graph.

upstream: pkg/controller/garbagecollector/dump.go
"""

from kcm_cli.controllers.garbage_collector.graph import Graph, Node


def dot(graph: Graph, uid: str = "") -> bytes:
    """All nodes that have owners or dependents. ``uid``: comma-separated uids; only nodes that are connected with
    these."""
    chosen = _connected(graph, uid) if uid else [n for n in graph.nodes() if n.owners or n.dependents]
    known = {node.identity.uid for node in chosen}
    lines = ["strict digraph full {", "  // Node definitions."]
    lines += [_node(node) for node in sorted(chosen, key=lambda n: n.identity)]
    lines.append("")
    lines.append("  // Edge definitions.")
    for node in sorted(chosen, key=lambda n: n.identity):
        for ref in sorted(node.owners, key=lambda r: r.uid):
            if ref.uid in known:
                lines.append(f'  "{node.identity.uid}" -> "{ref.uid}";')
    lines.append("}")
    return ("\n".join(lines) + "\n").encode()


def _connected(graph: Graph, uid: str) -> list[Node]:
    found: dict[str, Node] = {}
    todo = [start for one in uid.split(",") if (start := graph.get(one)) is not None]
    while todo:
        node = todo.pop()
        if node.identity.uid in found:
            continue
        found[node.identity.uid] = node
        todo.extend(node.dependents.values())
        todo.extend(owner for ref in node.owners if (owner := graph.get(ref.uid)) is not None)
    return list(found.values())


def _node(node: Node) -> str:
    me = node.identity
    group, _, version = me.api_version.rpartition("/")
    kind = f"{me.kind}.{version}.{group}" if group else f"{me.kind}.{version}"
    label = f"uid={me.uid}\\nnamespace={me.namespace}\\n{kind}/{me.name}\\n"
    attributes = [
        f'label="{label}"',
        f'group="{group}"',
        f'version="{version}"',
        f'kind="{me.kind}"',
        f'namespace="{me.namespace}"',
        f'name="{me.name}"',
        f'uid="{me.uid}"',
        f'missing="{str(node.virtual).lower()}"',
        f'beingDeleted="{str(node.being_deleted).lower()}"',
        f'deletingDependents="{str(node.deleting_dependents).lower()}"',
        f'virtual="{str(node.virtual).lower()}"',
    ]
    return "  " + f'"{me.uid}" [\n    ' + "\n    ".join(attributes) + "\n  ];"
