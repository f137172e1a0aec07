import pytest
from hypothesis import given
from hypothesis import strategies as st

from kcm_cli.machinery import codec, labels
from kcm_cli.machinery.errors import FormatError
from kcm_cli.machinery.labels import EVERYTHING, NOTHING, LabelSelector, LabelSelectorRequirement
from tests.kit.growth import grows_less

_OPERATORS = "in, notin, =, ==, !=, gt, lt"


def term(key: str, operator: str, *values: str) -> LabelSelectorRequirement:
    return LabelSelectorRequirement(key, operator, values)


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("", ""),
        ("  ", ""),
        ("a=b", "a=b"),
        (" b = c , a == d ", "a==d,b=c"),
        ("a!=b", "a!=b"),
        ("a=", "a="),
        ("a=,b", "a=,b"),
        ("x in (b, a)", "x in (a,b)"),
        ("x notin (b,,a)", "x notin (,a,b)"),
        ("x in ()", "x in ()"),
        ("x in (a,)", "x in (,a)"),
        ("x in (,)", "x in ()"),
        ("x, !y", "x,!y"),
        ("n>1,n<5", "n>1,n<5"),
        ("in in (in,notin)", "in in (in,notin)"),
        ("notin=in", "notin=in"),
        ("example.com/a=b", "example.com/a=b"),
        ("!a,b", "!a,b"),
        ("a\t=\nb", "a=b"),
    ],
)
def test_parses_and_prints_canonically(text, canonical):
    selector = labels.parse(text)
    assert str(selector) == canonical
    assert str(labels.parse(str(selector))) == canonical


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("=", "found '=', expected: !, identifier, or 'end of string'"),
        (",", "found ',', expected: !, identifier, or 'end of string'"),
        ("a=b=c", "found '=', expected: ',' or 'end of string'"),
        ("a=b c", "found 'c', expected: ',' or 'end of string'"),
        ("a,", "found '', expected: identifier after ','"),
        ("a,,b", "found ',', expected: identifier after ','"),
        ("a in", "unable to parse requirement: found '' expected: '('"),
        ("a in (b", "unable to parse requirement: found '', expected: ',' or ')'"),
        ("a in (b,", "unable to parse requirement: found '', expected: ',', or identifier"),
        ("a in (", "unable to parse requirement: found '', expected: ',', ')' or identifier"),
        ("a in (b c)", "unable to parse requirement: found 'c', expected: ',' or ')'"),
        ("a b", f"unable to parse requirement: found 'b', expected: {_OPERATORS}"),
        ("a!", f"unable to parse requirement: found '!', expected: {_OPERATORS}"),
        ("!", "unable to parse requirement: found '', expected: identifier"),
        ("!a=b", "found '=', expected: ',' or 'end of string'"),
        ("a=(", "unable to parse requirement: found '(', expected: identifier"),
        (
            "n>x",
            'unable to parse requirement: values[0]: Invalid value: "x": '
            "for 'Gt', 'Lt' operators, the value must be an integer",
        ),
    ],
)
def test_error_messages(text, message):
    with pytest.raises(FormatError) as caught:
        labels.parse(text)
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("text", "start"),
    [
        ("-a", 'unable to parse requirement: <nil>: Invalid value: "-a": name part must consist of'),
        ("a/b/c=d", 'unable to parse requirement: <nil>: Invalid value: "a/b/c": a valid label key must'),
        ("a=-", 'unable to parse requirement: values[0][a]: Invalid value: "-": a valid label must be'),
    ],
)
def test_names_the_bad_key_or_value(text, start):
    with pytest.raises(FormatError) as caught:
        labels.parse(text)
    assert str(caught.value).startswith(start)


@pytest.mark.parametrize(
    ("text", "matching", "other"),
    [
        ("a=b", {"a": "b", "c": "d"}, {"a": "c"}),
        ("a==b", {"a": "b"}, {}),
        ("a!=b", {}, {"a": "b"}),
        ("a in (b,c)", {"a": "c"}, {"a": "d"}),
        ("a notin (b,c)", {"x": "y"}, {"a": "b"}),
        ("a", {"a": ""}, {"b": "a"}),
        ("!a", {"b": "a"}, {"a": ""}),
        ("n>1", {"n": "2"}, {"n": "1"}),
        ("n>1", {"n": "10"}, {"n": "ten"}),
        ("n<1", {"n": "-1"}, {}),
        ("a=", {"a": ""}, {}),
        ("a=b,c=d,!e", {"a": "b", "c": "d"}, {"a": "b", "c": "d", "e": "f"}),
    ],
)
def test_matches(text, matching, other):
    selector = labels.parse(text)
    assert selector.matches(matching)
    assert not selector.matches(other)


def test_absent_selects_nothing_and_empty_everything():
    assert labels.from_label_selector(None) is NOTHING
    assert labels.from_label_selector(LabelSelector()) is EVERYTHING
    assert not NOTHING.matches({})
    assert not NOTHING.empty
    assert EVERYTHING.matches({})
    assert EVERYTHING.empty


def large(number: int, terms: int = 6_000) -> LabelSelector:
    names = (f"absent-{index}" for index in range(terms))
    return LabelSelector(None, tuple(term(name, "DoesNotExist") for name in (*names, f"other-{number}")))


def many_values(number: int) -> LabelSelector:
    return LabelSelector(None, (term("key", "NotIn", *(f"v{index}" for index in range(30_000)), f"w{number}"),))


def many_labels(number: int) -> LabelSelector:
    return LabelSelector({f"key-{index}": str(number) for index in range(20_000)})


@pytest.mark.parametrize("make", [large, many_values, many_labels])
def test_large_selectors_are_compiled_once_each_however_many_there_are(make):
    selectors = [make(number) for number in range(20)]  # more than fit among the documents
    compiled = [labels.from_label_selector(selector) for selector in selectors]
    again = [labels.from_label_selector(selector) for selector in selectors]
    assert all(first is second for first, second in zip(compiled, again, strict=True))


def test_selectors_that_come_and_go_are_never_taken_for_one_another():
    before = len(labels._large)
    for number in range(500):  # at the addresses of those before
        selector = large(number, 100)
        for _ in range(2):
            found = labels.from_label_selector(selector)
            assert not found.matches({f"other-{number}": ""})
            assert found.matches({f"other-{number - 1}": ""})
        del selector
    assert len(labels._large) == before


def test_compiles_the_api_form():
    document = b"""{"matchLabels": {"b": "1", "a": "2"}, "matchExpressions": [
        {"key": "c", "operator": "In", "values": ["z", "y"]},
        {"key": "d", "operator": "NotIn", "values": ["x"]},
        {"key": "e", "operator": "Exists"}, {"key": "f", "operator": "DoesNotExist"}]}"""
    selector = labels.from_label_selector(codec.decode(document, LabelSelector))
    assert str(selector) == "a=2,b=1,c in (y,z),d notin (x),e,!f"
    assert selector.matches({"a": "2", "b": "1", "c": "y", "e": ""})
    assert selector.exact("a") == "2"
    assert selector.exact("c") is None


@pytest.mark.parametrize(
    ("term", "message"),
    [
        (("a", "Is", ()), '"Is" is not a valid label selector operator'),
        (
            ("a", "In", ()),
            "values: Invalid value: null: for 'in', 'notin' operators, values set can't be empty",
        ),
        (
            ("a", "Exists", ("b",)),
            'values: Invalid value: ["b"]: values set must be empty for exists and does not exist',
        ),
    ],
)
def test_refuses_a_bad_expression(term, message):
    selector = LabelSelector(match_expressions=(LabelSelectorRequirement(*term),))
    with pytest.raises(FormatError) as caught:
        labels.from_label_selector(selector)
    assert str(caught.value) == message
    assert labels.format_label_selector(selector) == "<error>"


def test_all_problems_are_named_together():
    with pytest.raises(FormatError) as caught:
        labels.requirement("-", labels.IN, ())
    assert str(caught.value).startswith('[key: Invalid value: "-": name part')
    assert str(caught.value).endswith("values set can't be empty]")


@pytest.mark.parametrize(
    ("text", "form"),
    [
        ("", LabelSelector({})),
        ("b==c,a=b", LabelSelector({"a": "b", "b": "c"})),
        (
            "a in (c,b),!d,e",
            LabelSelector({}, (term("a", "In", "b", "c"), term("d", "DoesNotExist"), term("e", "Exists"))),
        ),
        ("a notin (b)", LabelSelector({}, (term("a", "NotIn", "b"),))),
    ],
)
def test_text_in_the_api_form(text, form):
    assert labels.to_label_selector(text) == form


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a!=b", '"!=" is not a valid label selector operator'),
        ("a>1", '"gt" isn\'t supported in label selectors'),
        ("a<1", '"lt" isn\'t supported in label selectors'),
        (
            "a in (b",
            'couldn\'t parse the selector string "a in (b": '
            "unable to parse requirement: found '', expected: ',' or ')'",
        ),
    ],
)
def test_text_that_the_api_form_cannot_express(text, message):
    with pytest.raises(FormatError) as error:
        labels.to_label_selector(text)
    assert str(error.value) == message


def test_prints_for_columns():
    assert labels.format_label_selector(LabelSelector()) == "<none>"
    assert labels.format_label_selector(LabelSelector(match_labels={"b": "1", "a": "2"})) == "a=2,b=1"
    assert labels.format_set({"b": "1", "a": ""}) == "a=,b=1"


_keys = st.sampled_from(["a", "b", "in", "x/y", "n"])
_values = st.sampled_from(["", "1", "22", "v", "in", "notin"])
_sets = st.dictionaries(_keys, _values)
_terms = st.builds(
    lambda key, operator, values: labels.requirement(
        key,
        operator,
        ()
        if operator in (labels.EXISTS, labels.NOT_EXISTS)
        else tuple(values if operator in (labels.IN, labels.NOT_IN) else values[:1]),
    ),
    _keys,
    st.sampled_from([labels.IN, labels.NOT_IN, labels.EXISTS, labels.NOT_EXISTS, "=", "==", "!="]),
    st.lists(_values, min_size=1, unique=True),
)


@given(st.lists(_terms), _sets)
def test_the_text_of_a_selector_selects_the_same(terms, candidate):
    selector = labels.Selector(tuple(terms))
    parsed = labels.parse(str(selector))
    assert parsed.matches(candidate) == selector.matches(candidate)


def _meets(term: labels.Requirement, candidate: dict[str, str]) -> bool:
    """The definition of each operator, one requirement at a time."""
    value, bound = candidate.get(term.key), term.values[0] if term.values else ""
    match term.operator:
        case labels.EXISTS:
            return value is not None
        case labels.NOT_EXISTS:
            return value is None
        case labels.NOT_IN | labels.NOT_EQUALS:
            return value is None or value not in term.values
        case labels.GREATER:
            return value is not None and value.isdecimal() and int(value) > int(bound)
        case labels.LESS:
            return value is not None and value.isdecimal() and int(value) < int(bound)
    return value is not None and value in term.values


_bounds = st.builds(
    labels.requirement,
    _keys,
    st.sampled_from([labels.GREATER, labels.LESS]),
    st.sampled_from([("0",), ("1",), ("20",)]),
)


@given(st.lists(_terms | _bounds, max_size=8), _sets)
def test_a_selector_matches_what_meets_each_requirement(terms, candidate):
    assert labels.Selector(tuple(terms)).matches(candidate) == all(_meets(term, candidate) for term in terms)


@pytest.mark.parametrize("operator", ["DoesNotExist", "Exists", "NotIn", "In"])
def test_matching_takes_time_for_the_labels_not_for_the_requirements(operator):
    values = ("v",) if operator.endswith("In") else ()
    candidate = {f"label-{n}": "x" for n in range(5)}

    def prepare(size):
        terms = tuple(term(f"k{n}", operator, *values) for n in range(size))
        selector = labels.from_label_selector(LabelSelector(None, terms))
        return lambda: [selector.matches(candidate) for _ in range(1000)]

    assert grows_less(prepare, 200, 4)


@given(_sets, _sets)
def test_labels_of_a_selector_match_supersets(wanted, candidate):
    selector = labels.from_label_selector(labels.LabelSelector(match_labels=wanted))
    assert selector.matches(candidate) == (wanted.items() <= candidate.items())


@given(st.lists(_terms), _sets, _sets)
def test_what_is_selected_has_the_implied_labels(terms, implied, candidate):
    selector = labels.Selector(tuple(terms))
    if selector.implies(implied) and selector.matches(candidate):
        assert implied.items() <= candidate.items()


@given(_sets)
def test_exact_labels_are_implied(wanted):
    assert labels.from_label_selector(labels.LabelSelector(match_labels=wanted)).implies(wanted)
    assert not EVERYTHING.implies({**wanted, "more": ""})


@given(st.text("ab,=!() <>\tinotx"))
def test_any_text_parses_or_is_refused_cleanly(text):
    try:
        selector = labels.parse(text)
    except FormatError:
        return
    assert str(labels.parse(str(selector))) == str(selector)
