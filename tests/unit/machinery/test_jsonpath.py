"""JSONPath as columns use it."""

import pytest

from kcm_cli.machinery.errors import FormatError
from kcm_cli.machinery.jsonpath import Path, parse

DOC = {
    "spec": {"size": 3, "a.b": 1, "ports": [{"port": 1}, {"port": 2}, {"port": 3}]},
    "conditions": [{"type": "Ready", "status": "True", "n": 1}, {"type": "Other", "status": "False", "n": 2}],
}


@pytest.mark.parametrize(
    ("path", "found"),
    [
        (".spec.size", [3]),
        (".spec['a.b']", []),
        (r".spec['a\.b']", [1]),
        (".spec['ports']['x.y']", []),
        ("['spec.size']", [3]),
        (".spec['size', 'missing']", [3]),
        (".spec .size ", [3]),
        (".spec.ports[].port", [1]),
        (".spec.size.", []),
        (".", []),
        (r".spec.a\.b", [1]),
        (".spec.missing.more", []),
        (".spec.ports[0].port", [1]),
        (".spec.ports[-1].port", [3]),
        (".spec.ports[*].port", [1, 2, 3]),
        (".spec['ports'][*]['*']", [1, 2, 3]),
        (".spec['ports.*']", [{"port": 1}, {"port": 2}, {"port": 3}]),
        (".conditions['*.type']", ["Ready", "Other"]),
        (".conditions['*.type', '*.n']", ["Ready", "Other", 1, 2]),
        (".spec['size.*']", []),
        (r".spec['\*']", []),
        (r".conditions.\*", []),
        (".spec.ports[1:].port", [2, 3]),
        (".spec.ports[0,2].port", [1, 3]),
        ('.conditions[?(@.type=="Ready")].status', ["True"]),
        (".conditions[?(@.n>1)].type", ["Other"]),
        (".conditions[?(@.missing)].type", []),
        ("..port", [1, 2, 3]),
        ("...port", [1, 2, 3]),
        (".spec.ports[::2].port", [1, 3]),
        (".spec.ports[-2:].port", [2, 3]),
        (".spec.ports[1:-1].port", [2]),
        (".spec.ports[0:3].port", [1, 2, 3]),
        (".spec.ports[0:4].port", []),
        (".spec.ports[-4:].port", []),
        (".spec.ports[2:1].port", []),
        (".spec.ports[1:1].port", []),
        (".spec.ports[::0].port", []),
        (".spec.ports[::-1].port", []),
        (".spec.ports[?(@.port<99999999999999999999)].port", [1, 2, 3]),
        (".spec.ports[?(@.port>1.5)].port", [2, 3]),
        (".conditions[?(@.n==+1)].type", ["Ready"]),
        ("$.spec.size", [3]),
    ],
)
def test_finding(path, found):
    assert parse(path).find(DOC) == found


@pytest.mark.parametrize(
    "path",
    [
        ".a[",
        ".a[x]",
        ".a b",
        '.a["b"]',
        ".a['..b']",
        "....a",
        "..*",
        ".a[?(@.b==1x)]",
        f".a[?(@.b=={'9' * 400})]",
        f".a[{'0' * 5000}]",
        f".a[1:{'1' * 30}]",
    ],
)
def test_malformed(path):
    with pytest.raises(FormatError):
        parse(path)


@pytest.mark.parametrize("path", [".items[*].metadata.name", "..name", ".items[?(@.metadata)].metadata.name"])
def test_of_very_many_the_first_are_found(path):
    found = parse(path).find({"items": [{"metadata": {"name": n}} for n in range(100_000)]})
    assert found == list(range(len(found))) and found


def test_many_steps_find_no_more_than_few():
    found = 0

    def twice(value, work):
        nonlocal found
        for _ in range(2):
            found += 1
            yield value

    assert Path([twice] * 1000).find({})
    assert found <= 201_000


def test_nested_filters_share_their_work():
    """Without it, each nesting takes many times as long."""
    visits = 0

    class Counted(dict):
        def __contains__(self, name):
            nonlocal visits
            visits += 1
            return super().__contains__(name)

    items = [Counted(b=[Counted(b=[Counted(b=[Counted(b=1)] * 30)] * 30)] * 30)] * 30
    path = ".b"
    for _ in range(4):
        path = f"..[?(@{path})]"
    parse(path).find({"items": items})
    assert 0 < visits <= 600_000


def test_filters_that_have_no_work_left_leave_the_first_ones():
    doc = {"items": [{"n": n, "many": [0] * 1000} for n in range(1000)]}
    found = parse(".items[?(@.many[*])].n").find(doc)
    assert found and found == list(range(len(found)))
