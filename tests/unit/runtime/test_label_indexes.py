"""Indexes by labels agree with a search through all objects, whatever was asked and changed before."""

import asyncio
from collections.abc import Coroutine
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kcm_cli.api.apps import ReplicaSet
from kcm_cli.engine.dependents import selector_of
from kcm_cli.machinery import codec
from kcm_cli.machinery import labels as machinery_labels
from kcm_cli.machinery.errors import FormatError
from kcm_cli.machinery.labels import NOTHING, LabelSelector, Selector, from_label_selector
from kcm_cli.machinery.meta import Object, ObjectMeta
from kcm_cli.runtime.label_indexes import FEW, MOST_KEYS, LabelIndex, SelectorIndex
from kcm_cli.runtime.store import Store
from kcm_cli.runtime.turns import Turns

NAMESPACES = ("n1", "n2")
keys = st.sampled_from(["a", "b", "c"])
values = st.sampled_from(["", "x", "y"])
labels = st.dictionaries(keys, values)
names = st.integers(0, 60).map(str)


def obj(name: str, namespace: str, found: dict[str, str]) -> Object:
    return Object(metadata=ObjectMeta(name=name, namespace=namespace, labels=found))


def owner(name: str, namespace: str, selector: dict[str, Any] | None) -> ReplicaSet:
    doc = {"metadata": {"name": name, "namespace": namespace}, "spec": {"selector": selector}}
    return codec.convert(doc, ReplicaSet)


expressions = st.sampled_from(
    [
        {"key": "a", "operator": "In", "values": ["x"]},
        {"key": "b", "operator": "Exists"},
        {"key": "c", "operator": "DoesNotExist"},
        {"key": "c", "operator": "Nonsense"},
    ]
)
selectors = st.none() | st.fixed_dictionaries(
    {"matchLabels": labels, "matchExpressions": st.lists(expressions, max_size=2)}
)
namespaces = st.sampled_from(NAMESPACES)


def selected(store: Store[Object], namespace: str, selector: Selector) -> set[str]:
    return {one.name for one in store.list(namespace) if selector.matches(one.labels)}


@given(
    st.lists(st.tuples(st.sampled_from(["put", "pop", "ask"]), names, namespaces, labels), max_size=200),
    st.integers(0, 3),
)
def test_what_a_selector_selects(steps: list[tuple[str, str, str, dict[str, str]]], crowds: int) -> None:
    store: Store[Object] = Store()
    index = LabelIndex.of(store)
    for n in range(crowds * FEW):
        store.put(obj(f"crowd-{n}", NAMESPACES[n % 2], {"a": "x", "b": str(n % 3)}))
    for step, name, namespace, found in steps:
        if step == "put":
            store.put(obj(name, namespace, found))
        elif step == "pop":
            store.pop(f"{namespace}/{name}")
        selector = from_label_selector(LabelSelector(found))
        assert {one.name for one in index.selected(namespace, selector)} == selected(store, namespace, selector)
    assert index.selected("n1", NOTHING) == []


class Endless:
    """Turns that are always over."""

    async def step(self) -> None:
        await asyncio.sleep(0)


Preparing = Coroutine[Any, Any, None] | None


def gone_on(preparing: Preparing, steps: int) -> Preparing:
    """So many steps later; None if it ended."""
    try:
        for _ in range(steps if preparing is not None else 0):
            preparing.send(None)
    except StopIteration:
        return None
    return preparing


def change(store: Store[Object], step: str, one: Object) -> None:
    if step == "put":
        store.put(one)
    elif step in ("pop", "empty"):
        for key in [one.key] if step == "pop" else [each.key for each in store.list(one.namespace)]:
            store.pop(key)


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["put", "pop", "ask", "prepare", "go on", "cancel", "empty"]), names, namespaces, labels
        ),
        max_size=100,
    ),
    st.integers(FEW - 5, 2 * FEW),
)
def test_what_a_selector_selects_while_a_key_is_being_indexed(
    steps: list[tuple[str, str, str, dict[str, str]]], crowd: int
) -> None:
    store: Store[Object] = Store()
    index = LabelIndex.of(store)
    for n in range(2 * crowd):
        store.put(obj(str(n // 2), NAMESPACES[n % 2], {"a": "x", "b": str(n % 3)}))
    running: dict[str, Preparing] = dict.fromkeys(NAMESPACES)
    with patch.object(Turns, "of_loop", Endless):
        for step, name, namespace, found in steps:
            selector, preparing = from_label_selector(LabelSelector(found)), running[namespace]
            change(store, step, obj(name, namespace, found))
            if step == "ask":
                assert {one.name for one in index.selected(namespace, selector)} == selected(store, namespace, selector)
            elif step == "prepare" and preparing is None:
                running[namespace] = index.prepare(namespace, selector)
            elif step == "cancel" and preparing is not None:
                preparing.close()
                running[namespace] = None
            running = {each: gone_on(running[each], 7) for each in NAMESPACES}
        for left in filter(None, running.values()):
            left.close()
    assert index._growing == {}
    filed = {value.partition("=")[0] for value in store.index_values("labels")}
    assert filed <= {f"{namespace}/{key}" for namespace, keys in index._keys.items() for key in keys}
    for namespace in NAMESPACES:
        for found in ({"a": "x"}, {"b": "1"}, {"a": "x", "b": "y"}, {"c": ""}):
            selector = from_label_selector(LabelSelector(found))
            assert {one.name for one in index.selected(namespace, selector)} == selected(store, namespace, selector)


async def test_a_key_is_indexed_in_turns_of_the_loop() -> None:
    store: Store[Object] = Store()
    index, asked = LabelIndex.of(store), from_label_selector(LabelSelector({"a": "3"}))
    for n in range(100):
        store.put(obj(str(n), "n1", {"a": str(n % 50)}))
    with patch.object(Turns, "of_loop", Endless), patch.object(store, "filed_again", wraps=store.filed_again) as filing:
        preparing = asyncio.create_task(index.prepare("n1", asked))
        other = asyncio.create_task(index.prepare("n1", asked))
        turns = 0
        while not (preparing.done() and other.done()):
            turns += 1
            await asyncio.sleep(0)
        assert turns >= len(store)
        assert {one.name for one in index.selected("n1", asked)} == {"3", "53"}
        assert filing.call_count == 1


def crowded(*namespaces: str) -> tuple[Store[Object], LabelIndex[Object]]:
    """Namespaces whose objects have the labels k0 to k19."""
    store: Store[Object] = Store()
    for namespace in namespaces:
        for n in range(2 * FEW):
            store.put(obj(str(n), namespace, {f"k{key}": "v" for key in range(20)}))
    return store, LabelIndex.of(store)


def asking(key: str) -> Selector:
    return from_label_selector(LabelSelector({key: "v"}))


async def test_a_namespace_does_not_wait_for_another_one() -> None:
    store, index = crowded("n1", "n2")
    for n in range(4 * FEW):
        store.put(obj(f"more-{n}", "n1", {}))
    with patch.object(Turns, "of_loop", Endless):
        preparing = asyncio.create_task(index.prepare("n1", asking("k1")))
        await asyncio.sleep(0)
        other = asyncio.create_task(index.prepare("n2", asking("k2")))
        for _ in range(2 * FEW):
            await asyncio.sleep(0)
        assert not preparing.done()
        assert store.count("labels", "n2/k2=v") > 0
        await asyncio.wait([preparing, other])
    assert index._keys == {"n1": ["k1"], "n2": ["k2"]}
    assert not index._filing, "no lock is kept"


async def test_a_key_at_which_a_sync_was_cancelled_is_not_kept() -> None:
    store, index = crowded("n1")
    with patch.object(Turns, "of_loop", Endless):
        preparing = asyncio.create_task(index.prepare("n1", asking("k1")))
        await asyncio.sleep(0)
        assert store.count("labels", "n1/k1=v") > 0
        preparing.cancel()
        await asyncio.wait([preparing])
    store.put(obj("new", "n1", {"k1": "v"}))
    assert store.index_values("labels") == []


async def test_a_key_is_not_kept_if_others_were_indexed_meanwhile() -> None:
    store, index = crowded("n1")
    with patch.object(Turns, "of_loop", Endless):
        preparing = asyncio.create_task(index.prepare("n1", asking("k19")))
        await asyncio.sleep(0)
        for n in range(MOST_KEYS):
            index.selected("n1", asking(f"k{n}"))
        await preparing
    store.put(obj("new", "n1", {"k19": "v"}))
    assert store.index_values("labels") == [f"n1/k{n}=v" for n in range(MOST_KEYS)]


def find(store: Store[ReplicaSet], namespace: str, found: dict[str, str]) -> set[str]:
    matching = set()
    for one in store.list(namespace):
        try:
            if selector_of(one).matches(found):
                matching.add(one.name)
        except FormatError:
            continue
    return matching


@given(
    st.lists(
        st.tuples(st.just("put"), names, namespaces, selectors)
        | st.tuples(st.just("pop"), names, namespaces, selectors),
        max_size=100,
    ),
    st.lists(labels, min_size=1, max_size=4),
    st.sampled_from([0, machinery_labels.LARGE]),
)
def test_whose_selectors_select_labels(
    steps: list[tuple[str, str, str, dict[str, Any] | None]], asked: list[dict[str, str]], large: int
) -> None:
    """Whether compiled selectors are kept (of documents with more than ``large`` bytes) or not."""
    store: Store[ReplicaSet] = Store()
    index = SelectorIndex.of(store, selector_of)
    with patch.object(machinery_labels, "LARGE", large):
        for number, (step, name, namespace, selector) in enumerate(steps):
            if step == "put":
                store.put(owner(name, namespace, selector))
            else:
                store.pop(f"{namespace}/{name}")
            found = asked[number % len(asked)]
            assert {one.name for one in index.selecting(namespace, found)} == find(store, namespace, found)


def test_each_store_has_one_of_each() -> None:
    store: Store[ReplicaSet] = Store()
    assert LabelIndex.of(store) is LabelIndex.of(store)
    assert SelectorIndex.of(store, selector_of) is SelectorIndex.of(store, selector_of)


class Counted(Store[Object]):
    """Counts the objects that are looked at."""

    def __init__(self) -> None:
        super().__init__()
        self.seen = 0

    def list(self, namespace: str = "") -> Any:
        found = super().list(namespace)
        self.seen += len(found)
        return found

    def by_index(self, index: str, value: str) -> Any:
        found = super().by_index(index, value)
        self.seen += len(found)
        return found


def test_only_objects_with_the_rarest_label_are_compared() -> None:
    store = Counted()
    index = LabelIndex.of(store)
    for n in range(1000):
        store.put(obj(str(n), "n1", {"env": "prod", "app": f"a{n % 100}"}))
    for n in range(100):
        selector = from_label_selector(LabelSelector({"env": "prod", "app": f"a{n}"}))
        assert len(index.selected("n1", selector)) == 10
    assert store.seen <= 100 * 10


def test_the_number_of_indexed_keys_is_limited() -> None:
    store: Store[Object] = Store()
    index = LabelIndex.of(store)
    many = {f"k{n}": "v" for n in range(50)}
    for n in range(2 * FEW):
        store.put(obj(str(n), "n1", many))
    for key in many:
        assert len(index.selected("n1", from_label_selector(LabelSelector({key: "v"})))) == 2 * FEW
    assert len(store.index_values("labels")) == MOST_KEYS


@pytest.mark.parametrize("rounds", [3])
def test_nothing_is_kept_of_a_namespace_that_is_gone(rounds: int) -> None:
    objects: Store[Object] = Store()
    owners: Store[ReplicaSet] = Store()
    by_labels, by_selectors = LabelIndex.of(objects), SelectorIndex.of(owners, selector_of)
    for at in range(rounds):
        namespace = f"n{at}"
        for n in range(2 * FEW):
            objects.put(obj(str(n), namespace, {"a": "x"}))
            owners.put(owner(str(n), namespace, {"matchLabels": {f"k{n}": "x"}}))
        assert by_labels.selected(namespace, from_label_selector(LabelSelector({"a": "x"})))
        assert by_selectors.selecting(namespace, {"k3": "x"})
        for n in range(2 * FEW):
            objects.pop(f"{namespace}/{n}")
            owners.pop(f"{namespace}/{n}")
    assert (by_labels._keys, by_selectors._sets) == ({}, {})


def test_sets_of_label_keys_that_no_selector_has_any_more_are_forgotten() -> None:
    owners: Store[ReplicaSet] = Store()
    index = SelectorIndex.of(owners, selector_of)
    for n in range(1000):
        owners.put(owner("one", "n1", {"matchLabels": {f"k{n}": "x"}}))
    assert [one.name for one in index.selecting("n1", {"k999": "x"})] == ["one"]
    assert len(index._sets["n1"]) <= 2 + FEW
