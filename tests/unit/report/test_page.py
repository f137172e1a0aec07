"""Pages of reports: their data is all that it was, and cannot become anything else."""

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kcm_cli.report.page import PLAN, TRACE, page

_DATA = re.compile(r'<script type="application/json" id="data">(.*?)</script>', re.DOTALL)


def data_of(html: str) -> str:
    (found,) = _DATA.findall(html)
    return str(found)


VALUES = st.recursive(st.none() | st.integers() | st.text(), lambda one: st.dictionaries(st.text(), one), max_leaves=5)


@given(VALUES)
def test_the_data_is_that_of_json(value: object) -> None:
    text = data_of(page(TRACE, "t", {"value": value}))
    assert json.loads(text) == {"value": value}
    assert "<" not in text and ">" not in text and text.isprintable()


@pytest.mark.parametrize(
    "hostile", ["</script><script>x()</script>", "<!--<script>", "]]>", "\u202egnp.exe", "\u2028", "\x1b]0;x\x07"]
)
def test_a_hostile_name_is_only_text(hostile: str) -> None:
    html = page(PLAN, hostile, {"name": hostile})
    assert html.count("<script") == 2 and html.count("</script>") == 2
    assert hostile not in html and json.loads(data_of(html)) == {"name": hostile}
    assert html.replace("\n", "").isprintable()


def test_nothing_is_asked_for_and_no_script_but_its_own_runs() -> None:
    html = page(TRACE, "t", {})
    (policy,) = re.findall(r'Content-Security-Policy" content="([^"]*)"', html)
    assert policy.startswith("default-src 'none'; style-src 'sha256-") and "unsafe" not in policy
    bare = html.replace('"http://www.w3.org/2000/svg"', "")  # the name of a namespace
    assert not re.search(
        r"https?:|//[a-z]|\bsrc=|@import|url\(|fetch\(|XMLHttp|import\(|innerHTML|eval\(|\son[a-z]+=", bare
    )


def test_bytes_of_another_encoding_are_shown_as_they_can_be() -> None:
    assert json.loads(data_of(page(TRACE, "t", b'{"a":"\xff"}'))) == {"a": "\ufffd"}
