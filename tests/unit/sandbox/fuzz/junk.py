"""Values that are put in wrong places."""

TEXTS = (
    *("", " ", "a", "A", "-", ".", "*", "/", "%", "\\", '"', "\0", "\n", "\ud800", "é", "日本", "٣", "²", "\U0001f600"),
    *("a" * 64, "a" * 254, "a" * 5000, "a.b/c", "a/b/c", "/a", "a/", "..", "../..", "~0~2", "a,b", "a=b", "!x"),
    *("a in (", "0", "1", "-1", "+1", "01", "1.5", "1e3", "1e9999", "0x1", "1_0", "99999999999999999999", "1" * 5000),
    *("1Gi", "-1Gi", "1m", "1n", "0.0000000001", "1e-400", "9Ei", "99999E", "1Ki1", "NaN", "Infinity", "nan", "50%"),
    *("-5%", "1h", "-1s", "1h1", "9999999h", "2030-01-01T00:00:00Z", "2030-01-01T00:00:60Z", "0000-00-00T00:00:00Z"),
    *("2030-01-01", "2030-W01-1", "99999-01-01T00:00:00Z", "2030-01-01T00:00:00.123456789123Z"),
    *("0001-01-01T00:00:00Z", "10.0.0.1", "010.0.0.1", "::1", "::ffff:1.2.3.4", "fe80::1%eth0", "10.0.0.0/8"),
    *("10.0.0.1/8", "10.0.0.0/99", "::/0", "true", "null", "{}", "[]", "{", "[[", "- a", "a: b", "\ufeff", "e30="),
    *("e30", "====", "é==", "http://a", "https://[::1", "https://h:99999/p", "//", "http://a b", "mailto:a", "a@b.c"),
    *("* * * * *", "*/0 * * * *", "0 0 31 2 *", "@every 1s", "@every -1s", "TZ=x * * * * *", "60 * * * *"),
    *("1-0 * * * *", "object.x", "self", "1/0", "'a'.matches('(')", "size(self)", "has(x)", "'", "[1][2]", "a.b.c("),
    *("1" + "+1" * 240, "(" * 200 + "1" + ")" * 200, "self" + ".x" * 240, "Object{x: 1}", "(", "[a", "(?<x>a)"),
    *("(?i)a", "a{1001}", "^(a+)+$", "\\p{L}", "\\8", ".spec", "{.a[?(@.b)]}", ".a[0]", "$.a", "{", "In", "Exists"),
    *("Gt", "Always", "Never", "TCP", "SCTP", "None", "Delete", "Foreground", "Equal", "NoExecute", "pods", "cpu"),
    *("requests.cpu", "hugepages-2Mi", "count/pods", "limits.memory", "example.com/a", "kubernetes.io/a"),
    *("metadata.name", "metadata.labels['a']", "spec.nodeName", "status.podIP", "limits.cpu", "default"),
    *("kube-system", "0-1,3-2", "1,,2", "0-", "9223372036854775808", "Europe/Paris", "Local", "../etc", "en_US"),
)
NUMBERS = (
    *(0, 1, -1, 2, 7, 100, 65535, 65536, 2**31 - 1, 2**31, -(2**31) - 1, 2**53 + 1, 2**63 - 1, 2**63, -(2**63) - 1),
    *(2**64, 10**30, 1.0, 1.5, -0.0, 1e-9, 1e21, 1e308, float("inf"), float("nan")),
)
BAGS = (
    *([], [None], [[]], [{}], [""], [1], ["a", "a"], [True], {}, {"": ""}, {"a": None}, {"a": {}}, {"a": "b"}),
    *({"a/b/c": "d"}, {"é": "ü"}, {"a" * 300: "b"}, {"a": "b" * 300}, {"$patch": "delete"}, {"$patch": "replace"}),
    *({"$patch": 1}, [{"$patch": "delete"}], {"$setElementOrder/a": 1}, {"$retainKeys": ["a"]}, {"$retainKeys": 1}),
    *({"$deleteFromPrimitiveList/a": ["b"]}, {"f:metadata": {"f:labels": {".": {}}}}, {"f:a": {'k:{"a":1}': {}}}),
    *({"f:a": {"k:{": {}}}, {"v:[": {}}, {"i:x": {}}, {"matchLabels": {"a": 1}}, {"matchExpressions": [{}]}),
    *({"apiVersion": 1, "kind": []}, {"name": {}}, {"kind": "List"}),
)
KEYS = (
    *("", "a", "$patch", "$retainKeys", "unknown", "name", "Name", "metadata", "spec", "status", "labels"),
    *("annotations", "finalizers", "ownerReferences", "managedFields", "generateName", "creationTimestamp"),
    *("deletionTimestamp", "uid", "resourceVersion", "namespace", "generation", "apiVersion", "kind", "selector"),
    *("template", "items", "é", "a" * 300),
)
SPOILED = (
    *(b"", b" ", b"{", b"null", b"[]", b"1", b'"a"', b"{}{}", b"{}x", b"\xff\xfe", b"\xef\xbb\xbf{}", b'{"a":\xff}'),
    *(b"k8s\0", b"k8s\0\x0a\x01", b"k8s\0" + b"\x08" * 40, b"\x1f\x8b\x08", b"- a\n", b"a: &a [*a]"),
    *(b"a: !!python/object:x {}", b"a: 2030-01-01\nb: 0o7\nc: yes\nd: .nan\n", b"a: &a {b: 1}\nc: {<<: *a}\n"),
    *(b"? [a]\n: b\n", b"---\n---\n", b"\t"),
    b"a: &a [x]\nb: &b [*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b]\nd: &d [*c,*c,*c,*c]\ne: &e [*d,*d,*d,*d]\nf: [*e,*e,*e]",
    *(b'{"a":1,"a":2}', b'{"metadata":{"name":"x","name":"y"}}', b'{"spec":NaN}', b'{"a":1e999}', b'{"a":"\\ud800"}'),
    *(b"[" * 20000, b'{"a":' * 20000, b'{"a":01}', b'{"a":-}', b'{"kind":1}', b'{"metadata":null}'),
    b'{"metadata":[]}',
)
