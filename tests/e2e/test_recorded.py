"""The recorded behaviour of the real v1.36 controllers and API server, run against ours over TLS.

``gaps/*.txt`` name what does not hold yet, one case a line. A case that fails and is not named fails the test, and
so does a named one that passes: the lists can only shrink.
"""

import fnmatch
import re
from collections.abc import Callable

import pytest

from tests.kit.places import API_CASES, GOLDEN
from tests.kit.recorded import GOLDEN_FLAGS, judge, known, run, with_patience

pytestmark = pytest.mark.e2e


def test_controllers_behave_as_recorded(start_sandbox: Callable[..., object]) -> None:
    sandbox = start_sandbox("--nodes", "0", manager=GOLDEN_FLAGS)
    passed, failed, text = with_patience(sandbox.url, sandbox.token, 12)
    judge(passed, failed, known("golden"), text)


def test_permissions_of_service_accounts_suffice(start_sandbox: Callable[..., object]) -> None:
    """RBAC is on; each controller uses its service account, with the verbs of its role."""
    flags = (*GOLDEN_FLAGS, "--use-service-account-credentials")
    sandbox = start_sandbox("--nodes", "0", manager=flags)
    only = (
        "deployment-create",
        "deployment-adopt*",
        "gc-*",
        "job-indexed",
        "pv-static-binding",
        "serviceaccount-*",
        "statefulset-revisions",
    )
    chosen = tuple(word for name in only for word in ("--only", name))
    passed, failed, text = run(GOLDEN, sandbox.url, sandbox.token, *chosen, "--patience", "2")
    assert [pattern for pattern in only if not fnmatch.filter(passed | failed, pattern)] == []
    judge(passed, failed, set(), text)
    assert '" cannot ' not in sandbox.log, "a controller asked for a verb that its role does not grant"


def test_the_api_server_responds_as_recorded(start_sandbox: Callable[..., object]) -> None:
    """A case that differs in the order of managedFields alone is tried again: see `reordered`."""
    sandbox = start_sandbox("--nodes", "0", "--no-manager")
    passed, failed, text = run(API_CASES, sandbox.url, sandbox.token)
    for _ in range(3):
        if again := reordered(text):
            print(text)
            chosen = tuple(word for name in sorted(again) for word in ("--only", name))
            better, _, text = run(API_CASES, sandbox.url, sandbox.token, *chosen)
            passed |= better
            failed -= better
    judge(passed, failed, known("apicases"), text)


def reordered(text: str) -> set[str]:
    """The failed cases that differ in nothing but the order of managedFields.

    Their order is that of the seconds in which they were written, on the real server too: a second that ends between
    two requests of a case changes it.
    """
    found = set()
    for part in re.split(r"^(?=OK |FAILED )", text, flags=re.M):
        differences = re.findall(r"^ {4}(?!request ).*", part, re.M)
        name = re.match(r"FAILED (\S+)", part)
        if name and differences and all(re.search(r"[. ]managedFields: .*\(order or ", line) for line in differences):
            found.add(name[1])
    return found


def test_only_another_order_of_managed_fields_is_retried() -> None:
    order = "      body / metadata.managedFields: expected [..., got [... (order or repetition)\n"
    apart = order.replace("metadata.managed", "metadata / managed")
    other = "      body / spec: expected 1, got 2\n"
    kept = "FAILED a (0.1s)\n    request 3: GET /\n"
    assert reordered(f"OK b (0.1s)\n{kept}{order}    request 4: GET /\n{order}OK c (0.1s)\n") == {"a"}
    assert reordered(f"{kept}{apart}OK c (0.1s)\n") == {"a"}
    assert reordered(f"{kept}{order}{other}OK c (0.1s)\n1 passed, 1 failed\n") == set()
    assert reordered("FAILED a (0.1s)\n    no recording to compare with\n1 failed\n") == set()
    assert reordered("OK c (0.1s)\n1 passed, 0 failed\n") == set()
