"""References to variables, as kubelets expand them."""

from kcm_cli.sandbox.nodes.expansion import MOST_EXPANDED, expand, references


def test_known_names_are_replaced() -> None:
    env = {"A": "1", "B": ""}
    assert expand("$(A) $$(A) $(B) $(C) $A $((A)) $(", env) == "1 $(A)  $(C) $A $((A)) $("


def test_references_are_the_names_that_expand_reads() -> None:
    assert references("$(A) $$(B) $C $(D") == ["A"]


def test_results_longer_than_linux_allows_are_none() -> None:
    env = {"A": "x" * (MOST_EXPANDED // 2)}
    assert expand("$(A)", env) == env["A"]
    assert expand("$(A)$(A)", env) is None
