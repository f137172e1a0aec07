"""The words of the pages: plain, American, and those that kubernetes.io uses. ``make style`` has the spelling."""

import re
from pathlib import Path

import pytest

from tests.kit.places import ROOT

WORDS = {
    "somebody": "another client, or a passive",
    "told": "reported",
    "behaviour": "behavior",
    "colour": "color",
    "whitelist": "allowlist",
    "blacklist": "denylist",
    "simply": "nothing",
    "easily": "nothing",
    "obviously": "nothing",
    "utilize": "use",
    "in order to": "to",
    "leverage": "use",
}
"""What is not written, and what is."""
PAGES = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md")]
PAGES += sorted((ROOT / "docs").glob("*.md"))
_WORD = re.compile(rf"\b(?:{'|'.join(WORDS)})\b(?! apart)", re.IGNORECASE)


def found(text: str) -> list[str]:
    prose = re.sub(r"```.*?```|`[^`\n]*`", "", text, flags=re.DOTALL)
    return [f"{word}: write {WORDS[word.lower()]}" for word in _WORD.findall(prose)]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_pages_use_the_words_of_the_house(page: Path) -> None:
    assert found(page.read_text()) == []


def test_a_word_in_code_is_no_word() -> None:
    assert found("Behaviour of `behaviour` is told apart from\n```\nbehaviour\n```\n") == ["Behaviour: write behavior"]
