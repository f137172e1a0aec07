"""The answers of ``kcm plan -o html``: a plan, and a plan beside what happened, as pages."""

from kcm_cli.cli import plan_compare, plan_text
from kcm_cli.machinery import codec
from kcm_cli.plan.answer import Answer
from kcm_cli.plan.comparison import Comparison
from kcm_cli.report.page import COMPARISON, PLAN, page


def plan_page(answer: Answer) -> str:
    """The page of a plan."""
    title = plan_text.headline(answer)
    return page(
        PLAN, title, {**codec.decode_doc(answer.json()), "headline": title, "verdict": plan_text.verdict(answer)}
    )


def comparison_page(found: Comparison) -> str:
    """The page of a plan beside what happened."""
    title, verdict = plan_compare.headline(found), plan_compare.verdict(found)
    document = {**codec.decode_doc(found.json()), "headline": title, "verdict": verdict, "good": found.as_planned}
    return page(COMPARISON, title, document)
