"""The algebra of sets of field paths."""

from hypothesis import given
from hypothesis import strategies as st

from kcm_cli.sandbox.apiserver.apply import fieldset
from kcm_cli.sandbox.apiserver.apply.fieldset import LEAF, SELF

paths = st.lists(st.sampled_from(["f:a", "f:b", 'k:{"name":"x"}', 'v:"y"']), min_size=1, max_size=4).map(tuple)
path_sets = st.frozensets(paths, max_size=8)


def tree(found):
    out = {}
    for path in found:
        at = out
        for element in path[:-1]:
            inner = at.get(element)
            if inner is None:
                inner = at[element] = {}
            elif not inner:
                inner = at[element] = {SELF: LEAF}
            at = inner
        last = path[-1]
        if last in at:
            if at[last]:
                at[last][SELF] = LEAF
        else:
            at[last] = {}
    return out


def of(fields):
    return frozenset(fieldset.paths(fields))


@given(path_sets)
def test_a_tree_holds_exactly_its_paths(found):
    assert of(tree(found)) == found


@given(path_sets, path_sets)
def test_union_intersection_and_difference_are_those_of_path_sets(left, right):
    one, two = tree(left), tree(right)
    assert of(fieldset.union(one, two)) == left | right
    assert of(fieldset.intersection(one, two)) == left & right
    assert of(fieldset.difference(one, two)) == left - right
    assert (of(one), of(two)) == (left, right), "no argument is changed"


@given(path_sets, path_sets)
def test_results_are_written_in_the_one_normal_form(left, right):
    one, two = tree(left), tree(right)
    for result in (
        fieldset.union(one, two),
        fieldset.intersection(one, two),
        fieldset.difference(one, two),
        fieldset.recursive_difference(one, two),
    ):
        assert result == tree(of(result))


@given(path_sets, path_sets)
def test_recursive_difference_takes_all_below_too(left, right):
    below = frozenset(path for path in left if any(path[:n] in right for n in range(1, len(path) + 1)))
    assert of(fieldset.recursive_difference(tree(left), tree(right))) == left - below


@given(path_sets)
def test_difference_with_nothing_in_common_is_the_same_object(found):
    fields = tree(found)
    assert fieldset.difference(fields, {"f:zz": LEAF}) is fields


def test_a_set_is_written_in_upstreams_order():
    ports = {f'k:{{"containerPort":{port},"protocol":"TCP"}}': {"f:protocol": {}, SELF: {}} for port in (443, 80)}
    fields = {"f:name": {}, "f:ports": ports, "f:args": {'v:"b"': {}, SELF: {}, 'v:"a"': {}}}
    shown = fieldset.ordered(fields)
    assert shown == fields
    assert list(shown) == ["f:args", "f:name", "f:ports"]
    assert list(shown["f:args"]) == [SELF, 'v:"a"', 'v:"b"']
    first, second = shown["f:ports"]
    assert "80" in first, "numbers are ordered as numbers"
    assert list(shown["f:ports"][second]) == [SELF, "f:protocol"]
