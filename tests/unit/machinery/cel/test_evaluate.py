"""Values and errors of expressions."""

import pytest

from kcm_cli.machinery.cel import CelError, CelSyntaxError, Program, failed_conversion
from kcm_cli.machinery.cel.parser import parse
from kcm_cli.machinery.cel.values import AssociativeList, equal

OBJECT = {
    "metadata": {"name": "a", "labels": {"x": "1"}},
    "spec": {"replicas": 3, "ports": [80, 443], "ratio": 0.5, "on": True, "none": None},
}

GIVES = {
    "1 + 2 * 3": 7,
    "(1 + 2) * 3": 9,
    "-7 / 2": -3,
    "-7 % 3": -1,
    "7.0 / 2.0": 3.5,
    "2u + 3u == 5u": True,
    "1 == 1.0": True,
    "1 == true": False,
    "'1' == 1": False,
    "[1, 2] == [1.0, 2.0]": True,
    "{'a': 1} == {'a': 1u}": True,
    "1 < 1.5 && 2u > 1": True,
    "'a' < 'b'": True,
    "!true || false": False,
    "true ? 'y' : 'n'": "y",
    "object.spec.replicas > 2": True,
    "object.spec.ports[1]": 443,
    "object['metadata']['name']": "a",
    "has(object.spec.on) && !has(object.spec.off)": True,
    "object.spec.none == null": True,
    "'x' in object.metadata.labels": True,
    "80 in object.spec.ports": True,
    "object.spec.ports.all(p, p > 79)": True,
    "object.spec.ports.exists(p, p == 443)": True,
    "object.spec.ports.exists_one(p, p == 443)": True,
    "object.spec.ports.map(p, p + 1)": [81, 444],
    "object.spec.ports.map(p, p > 80, p * 2)": [886],
    "object.spec.ports.filter(p, p < 100)": [80],
    "object.metadata.labels.all(k, k == 'x')": True,
    "object.metadata.labels.transformList(k, v, k + v)": ["x1"],
    "object.metadata.labels.transformMap(k, v, v + '!')": {"x": "1!"},
    "[1, 2].all(i, v, i < v)": True,
    "['a', 'b'].transformMapEntry(i, v, {v: i})": {"a": 0, "b": 1},
    "true || object.missing": True,
    "object.missing || true": True,
    "false && object.missing": False,
    "[1, 2].exists(x, x == 2 || x / 0 == 1)": True,
    "object.?spec.?off.orValue(5)": 5,
    "object.?spec.?replicas.orValue(5)": 3,
    "object.spec.?ports[?7].hasValue()": False,
    "optional.of(3).optMap(x, x + 1).value()": 4,
    "optional.none().or(optional.of(1)).value()": 1,
    "[1, ?optional.none(), ?optional.of(3)]": [1, 3],
    "{?'a': optional.none(), 'b': 1}": {"b": 1},
    "size('héllo')": 5,
    "'abc'.size() + [1].size() + {'a': 1}.size()": 5,
    "type(1) == int && type('') == string && type([]) == list": True,
    "string(1) + string(1.5) + string(true) + string(2.0)": "11.5true2",
    "int('7') + int(7.9)": 14,
    "double('1.5')": 1.5,
    "bytes('a') == b'a'": True,
    r"b'\x61\141' == b'aa'": True,
    r"'\u00e9\n'": "é\n",
    r"r'\n'": "\\n",
    "'''a\"b'''": 'a"b',
    "0x1F": 31,
    "1e3": 1000.0,
    "// comment\n1": 1,
    "'abc'.startsWith('a') && 'abc'.endsWith('c') && 'abc'.contains('b')": True,
    "'abc'.matches('^a.c$')": True,
    "'a,b,c'.split(',')": ["a", "b", "c"],
    "'a,b,c'.split(',', 2)": ["a", "b,c"],
    "['a', 'b'].join('-')": "a-b",
    "'aba'.replace('a', 'x', 1)": "xba",
    "'abc'.substring(1)": "bc",
    "'abc'.substring(0, 2)": "ab",
    "'ABC'.lowerAscii() + 'x'.upperAscii()": "abcX",
    "' a '.trim()": "a",
    "'abcb'.indexOf('b') + 'abcb'.lastIndexOf('b')": 4,
    "'%s is %d, %.2f'.format(['a', 1, 1.0])": "a is 1, 1.00",
    "'123 abc 456'.findAll('[0-9]+')": ["123", "456"],
    "'abc 123'.find('[0-9]+')": "123",
    "[3, 1, 2].sort()": [1, 2, 3],
    "[1, 2, 3].sum() == 6 && [1, 3].max() == 3 && [1, 3].min() == 1": True,
    "[1, 1, 2].distinct()": [1, 2],
    "[[1], [2, [3]]].flatten()": [1, 2, [3]],
    "[1, 2, 3].slice(1, 3)": [2, 3],
    "[1, 2].isSorted()": True,
    "lists.range(3)": [0, 1, 2],
    "sets.contains([1, 2], [2]) && sets.equivalent([1, 1], [1]) && !sets.intersects([1], [2])": True,
    "duration('1h') > duration('30m')": True,
    "timestamp('2020-01-01T00:00:00Z') + duration('24h') == timestamp('2020-01-02T00:00:00Z')": True,
    "timestamp('2020-03-05T01:02:03Z').getMonth()": 2,
    "timestamp('2020-03-05T23:02:03Z').getHours('+02:00')": 1,
    "duration('90m').getHours()": 1,
    "string(duration('90s'))": "90s",
    "string(timestamp('2020-01-01T00:00:00.5Z'))": "2020-01-01T00:00:00.5Z",
    "string(timestamp('2020-01-01T00:00:00-07:30') + duration('1s'))": "2020-01-01T00:00:01-07:30",
    "'%s'.format([timestamp('2020-01-01T00:00:00+02:00')])": "2020-01-01T00:00:00+02:00",
    "timestamp('2020-01-01T00:00:00+02:00').getDate()": 31,
    "timestamp('2020-01-01T00:00:00+02:00') == timestamp('2019-12-31T22:00:00Z')": True,
    "string(timestamp('2020-01-01T00:00:00-00:00'))": "2020-01-01T00:00:00Z",
    "(timestamp('9999-12-31T23:00:00+02:00') + duration('2h')).getFullYear()": 9999,
    "{'a': 1, 'a': 2}": {"a": 2},
    "{'a': 1, ?'a': optional.none()}": {},
    "dyn(quantity('1')) == null || 'x' == dyn(quantity('1'))": False,
    "double('0x1p3') == 8.0": True,
    "isSemver('1.2.3-01')": False,
    "isSemver('1.2.3-a.b+c.01')": True,
    "strings.quote('\\x00\\u2028\\n')": '"\x00\u2028\\n"',
    "[1, 2].exists_one(i, v, i == 0)": True,
    "quantity('50k').add(20) == quantity('50020')": True,
    "quantity('50M').compareTo(quantity('50Mi'))": -1,
    "quantity('1.5').isInteger()": False,
    "['1', '1Gi', '1e3', '1.1k', '0'].all(q, quantity(q).isInteger())": True,
    "['1.0', '1000m', '1.5Gi', '0.5Ki', '2000Ti', '8Ei', '1234567890123456789'].exists(q, quantity(q).isInteger())": (
        False
    ),
    "quantity('500m').add(quantity('500m')).isInteger() || quantity('0').add(quantity('1.5Gi')).isInteger()": False,
    "quantity('1Gi').add(1).asInteger() - quantity('1k').sub(quantity('2')).asInteger()": 1073740827,
    "quantity('1e50').isInteger() || quantity('1e-9').add(quantity('1e50')).isInteger()": False,
    "quantity('1.0') == quantity('1') && quantity('1024Mi') == quantity('1Gi')": True,
    "isQuantity('200K')": False,
    "url('https://u@example.com:80/a?b=c').getHostname()": "example.com",
    "url('https://example.com:80/a?b=c&b=d').getQuery()": {"b": ["c", "d"]},
    "isURL('x') || isURL('/p')": True,
    "isCIDR('fe80::%eth0/64')": False,
    "isURL('https://!&^(!*&07s6da..s)')": False,
    "url('https://x.y/a b?c d=e f').getEscapedPath()": "/a%20b",
    "ip('127.0.0.1').isLoopback() && ip('::1').family() == 6": True,
    "cidr('10.0.0.0/8').containsIP('10.1.2.3')": True,
    "isCIDR('10.0.0.0/0') && isCIDR('::1.2.3.4/96')": True,
    "isCIDR('10.0.0.0/255.0.0.0') || isCIDR('10.0.0.0/08') || isCIDR('010.0.0.0/8')": False,
    "isCIDR('fe80::1%eth0/64') || isCIDR('::ffff:1.2.3.4/96') || isCIDR('::/129') || isCIDR('1.2.3.4')": False,
    "cidr('10.0.0.0/8').containsCIDR('10.0.0.0/7')": False,
    "string(cidr('10.1.0.0/8').masked())": "10.0.0.0/8",
    "semver('1.2.3').isLessThan(semver('1.10.0'))": True,
    "semver('v1', true).major()": 1,
    "isSemver('1.0')": False,
    "int(duration('1s'))": 1000000000,
    "string(duration(1500000000))": "1.5s",
    "['a', 'b'].first().orValue('z')": "a",
    "[].last().hasValue()": False,
    "optional.unwrap([optional.of(1), optional.none()])": [1],
    "[3, 1, 2].sortBy(x, -x)": [3, 2, 1],
    "jsonpatch.escapeKey('a~b/c')": "a~0b~1c",
    "has(dyn('a').x)": False,
    "dyn(5).?x.hasValue()": False,
    "dyn(5)[?'x'].hasValue()": False,
    "format.dns1123Label().validate('A').hasValue()": True,
    "format.named('nothing').hasValue()": False,
    "Object{metadata: Object.metadata{labels: {'a': 'b'}}}": {"metadata": {"labels": {"a": "b"}}},
}

FAILS = {
    "object.data['x']": "no such key: data",
    "object.metadata.labels['y']": "no such key: y",
    "object.spec.ports[5]": "index out of bounds: 5",
    "nobody": "no such attribute(s): nobody",
    "1 / 0": "division by zero",
    "1 % 0": "modulus by zero",
    "9223372036854775807 + 1": "integer overflow",
    "0u - 1u": "unsigned integer overflow",
    "1 + 'a'": "no such overload",
    "cidr('10.0.0.0/8').containsIP('a')": "no such overload",
    "cidr('a')": "network address parse error during conversion from string: network address parse error during "
    "conversion from string: netip.ParsePrefix(\"a\"): no '/'",
    "'a' < 1": "no such overload",
    "null + 1": "no such overload: _+_(null_type, int)",
    "{} < 1": "no such overload: _<_(map, int)",
    "'a' in dyn(null)": "no such overload",
    "object.spec.replicas.x": "no such key: x",
    "object.metadata.name.x.y": "no such key: x",
    "dyn(null).x": "no such key: x",
    "dyn('a')[0]": "no such key: 0",
    "dyn([1]).x": "unsupported index type 'string' in list",
    "has(dyn([1]).x)": "unsupported index type 'string' in list",
    "[1][dyn(0.5)]": "unsupported index value 0.5 in list",
    "[1][dyn(1234567.5)]": "unsupported index value 1.2345675e+06 in list",
    "[1][dyn(0.0 / 0.0)]": "unsupported index value",
    "dyn(null).all(k, true)": "got 'types.Null', expected iterable type",
    "dyn(1.5).all(k, true)": "got 'types.Double', expected iterable type",
    "size(1)": "no such overload",
    "int('x')": "type conversion error from 'string' to 'int'",
    "duration('x')": "type conversion error from 'string' to 'google.protobuf.Duration'",
    "[].min()": "min called on empty list",
    "dyn(quantity('1')) == 'x'": "no such overload",
    "dyn(ip('::1')) != 1": "no such overload",
    "double('1e400')": "type conversion error from 'string' to 'double'",
    "timestamp('0001-01-01T00:00:00+02:00')": "timestamp overflow",
    "timestamp('9999-12-31T23:59:59-02:00')": "timestamp overflow",
    "(timestamp('9999-12-31T20:00:00-02:00') + duration('3h')).getFullYear()": "timestamp overflow",
    "(timestamp('0001-01-01T04:00:00+02:00') - duration('3h')).getFullYear()": "timestamp overflow",
    "semver('')": "Version string empty",
    "semver('1.2')": "No Major.Minor.Patch elements found",
    "semver('1.02.3')": 'Minor number must not contain leading zeroes "02"',
    "semver('1.2.3.4')": 'Invalid character(s) found in patch number "3.4"',
    "semver('1.2.3-01')": 'Numeric PreRelease version must not contain leading zeroes "01"',
    "semver('1.2.3-a..b')": "Prerelease is empty",
    "semver('1.2.3-é')": 'Invalid character(s) found in prerelease "é"',
    "semver('1.2.3+')": "Build meta data is empty",
    "semver('1..3')": 'strconv.ParseUint: parsing "": invalid syntax',
    "optional.none().value()": "optional.none() dereference",
    "object.spec.ports.all(p, p / 0 == 1)": "division by zero",
    "1 ? 2 : 3": "no such overload",
    "nofunction(1)": "no such overload: nofunction(int)",
    "quantity('x')": "quantities must match the regular expression",
    "!-1": "no such overload: !_(int)",
    "'a'.substring(5)": "index out of range: 5",
    "'(' .matches('(')": "error parsing regexp",
}

LITERALS = "'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER}"
START = "expecting {'[', '{', '(', '.', '-', '!', " + LITERALS
SYNTAX = {
    "": [("1:0", f"Syntax error: mismatched input '<EOF>' {START}")],
    "object.x +": [("1:11", f"Syntax error: mismatched input '<EOF>' {START}")],
    "&& a": [("1:1", f"Syntax error: extraneous input '&&' {START}")],
    "1 1": [("1:3", "Syntax error: extraneous input '1' expecting <EOF>")],
    "1 1 1": [("1:3", "Syntax error: mismatched input '1' expecting <EOF>")],
    "a\n+ for": [("2:3", "reserved identifier: for")],
    "'a": [
        ("1:1", "Syntax error: token recognition error at: ''a'"),
        ("1:3", f"Syntax error: mismatched input '<EOF>' {START}"),
    ],
    "a = b": [
        ("1:3", "Syntax error: token recognition error at: '= '"),
        ("1:5", "Syntax error: extraneous input 'b' expecting <EOF>"),
    ],
    "has(x)": [("1:5", "invalid argument to has() macro")],
    "(a": [("1:3", "Syntax error: missing ')' at '<EOF>'")],
    "f((a": [("1:5", "Syntax error: mismatched input '<EOF>' expecting ')'")],
    "(a b)": [("1:4", "Syntax error: extraneous input 'b' expecting ')'")],
    "f(": [("1:3", "Syntax error: mismatched input '<EOF>' expecting {'[', '{', '(', ')', '.', '-', '!', " + LITERALS)],
    "a[]": [("1:3", "Syntax error: mismatched input ']' expecting {'[', '{', '(', '.', '-', '!', '?', " + LITERALS)],
    "[a": [("1:3", "Syntax error: mismatched input '<EOF>' expecting {']', ','}")],
    "[1 2]": [("1:4", "Syntax error: extraneous input '2' expecting {']', ','}")],
    "[1,,2]": [("1:4", "Syntax error: mismatched input ',' expecting ']'")],
    "{'a' 1}": [("1:6", "Syntax error: missing ':' at '1'")],
    "Object{a: 1": [("1:12", "Syntax error: mismatched input '<EOF>' expecting {'}', ','}")],
    "Object{1: 2}": [
        ("1:8", "Syntax error: mismatched input '1' expecting {'}', ',', '?', IDENTIFIER, ESC_IDENTIFIER}")
    ],
    "a ? : c": [
        ("1:5", f"Syntax error: extraneous input ':' {START}"),
        ("1:8", "Syntax error: mismatched input '<EOF>' expecting ':'"),
    ],
    "../x": [("1:2", "Syntax error: no viable alternative at input '..'")],
    "a.": [("1:3", "Syntax error: no viable alternative at input '.'")],
    "*": [
        ("1:1", f"Syntax error: mismatched input '*' {START}"),
        ("1:2", f"Syntax error: mismatched input '<EOF>' {START}"),
    ],
    "* && true": [
        ("1:1", f"Syntax error: mismatched input '*' {START}"),
        ("1:3", f"Syntax error: extraneous input '&&' {START}"),
    ],
    "f(*)": [("1:3", "Syntax error: extraneous input '*' expecting {'[', '{', '(', ')', '.', '-', '!', " + LITERALS)],
    "a.in": [
        ("1:3", "Syntax error: no viable alternative at input '.in'"),
        ("1:5", f"Syntax error: mismatched input '<EOF>' {START}"),
    ],
    "(!)": [("1:3", f"Syntax error: extraneous input ')' {START}")],
    "!-a": [("1:3", "Syntax error: no viable alternative at input '-a'")],
    "-!a": [("1:2", "Syntax error: no viable alternative at input '-!'")],
    "*-": [
        ("1:1", f"Syntax error: extraneous input '*' {START}"),
        ("1:3", "Syntax error: no viable alternative at input '-'"),
        ("1:3", f"Syntax error: mismatched input '<EOF>' {START}"),
    ],
    "a.`b`": [("1:3", "unsupported syntax: '`'")],
}


@pytest.mark.parametrize(("text", "value"), GIVES.items(), ids=GIVES)
def test_values(text: str, value: object) -> None:
    found = Program(text).evaluate({"object": OBJECT})
    assert found == value
    assert isinstance(found, bool) == isinstance(value, bool)


@pytest.mark.parametrize(("text", "message"), FAILS.items(), ids=FAILS)
def test_errors(text: str, message: str) -> None:
    with pytest.raises(CelError) as failure:
        Program(text).evaluate({"object": OBJECT})
    assert str(failure.value).startswith(message)
    if message == "no such overload":
        assert str(failure.value) in (message, f"{message}: {text.partition('(')[0]}(int)")


@pytest.mark.parametrize(("text", "message"), SYNTAX.items(), ids=SYNTAX)
def test_syntax_errors(text: str, message: list[tuple[str, str]]) -> None:
    with pytest.raises(CelSyntaxError) as failure:
        Program(text)
    reported = [line.removeprefix("ERROR: <input>:") for line in str(failure.value).split("\n") if "ERROR" in line]
    assert reported == [f"{place}: {problem}" for place, problem in message]


@pytest.mark.parametrize("text", ["#" * 50000, f"[{'1 2, ' * 15000}]", '"\n' * 40000])
def test_at_most_100_syntax_errors_are_reported(text: str) -> None:
    with pytest.raises(CelSyntaxError) as failure:
        Program(text)
    reported = [line for line in str(failure.value).split("\n") if line.startswith("ERROR")]
    assert len(reported) == 101
    assert reported[-1].endswith("Syntax error: More than 100 syntax errors")
    assert len(str(failure.value)) < 50_000  # lines that are as long as that are not shown


def test_at_most_100_type_errors_are_reported() -> None:
    with pytest.raises(CelSyntaxError) as failure:
        Program("if+" * 150 + "1")
    lines = str(failure.value).split("\n")
    assert len([line for line in lines if line.startswith("ERROR")]) == 100
    assert lines[-1] == "50 more errors were truncated"


def test_expressions_are_limited_to_100000_characters() -> None:
    assert Program(f"1{' ' * 99_999}").evaluate({}) == 1
    with pytest.raises(CelSyntaxError) as failure:
        Program(f"1{' ' * 100_000}")
    problem = "expression code point size exceeds limit: size: 100001, limit 100000"
    assert str(failure.value) == f"ERROR: <input>:-1:0: {problem}"


def test_an_expression_that_is_too_deep_has_no_position() -> None:
    for text in ("(" * 300, "a" + "+a" * 300, "f(" * 300):
        with pytest.raises(CelSyntaxError) as failure:
            Program(text)
        assert str(failure.value) == "ERROR: <input>:-1:0: expression recursion limit exceeded: 250"


def test_an_error_shows_its_line() -> None:
    with pytest.raises(CelSyntaxError) as failure:
        Program("a\n+ for")
    assert str(failure.value) == "ERROR: <input>:2:3: reserved identifier: for\n | + for\n | ..^"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("false && int('x') == 1", "type conversion error from 'string' to 'int'"),
        ("[1].all(x, uint(dyn(-1)) == 1u)", "unsigned integer overflow"),
        ("string(b'\\xff') == 'a'", "invalid UTF-8 in bytes, cannot convert to string"),
        ("int('1') == 1 && int('a' + 'b') == 1 && 1 / 0 == 1", ""),
    ],
)
def test_conversions_of_literals_fail_before_anything_runs(text: str, why: str) -> None:
    assert failed_conversion(parse(text)) == why


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [([1, 2], [2, 1], True), ([1, 1, 2], [1, 2, 2], False), ([1, 1], [1, 1], True), ([1, 2], [1, 1], False)],
)
def test_sets_with_repeated_items_are_equal_in_order_only(one: list[object], other: list[object], same: bool) -> None:
    assert equal(AssociativeList(one), AssociativeList(other)) is same
