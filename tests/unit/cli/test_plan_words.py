"""The syntax of arguments of kcm plan's flags."""

import pytest

from kcm_cli.cli.plan_words import BadWord, metric, node_count, scaled, set_image, target
from kcm_cli.plan import Metric, Scale, SetImage, Target


def test_arguments_and_their_changes() -> None:
    web = Target("deploy", "web")
    assert target("deploy/web", "--x") == web
    assert target("shop/deploy/web", "--x") == Target("deploy", "web", "shop")
    assert set_image("deploy/web=reg:5000/a/web:2") == SetImage(web, "reg:5000/a/web:2")
    assert set_image("deploy/web=app=web:2") == SetImage(web, "web:2", "app")
    assert set_image("deploy/web=web@sha256:ab") == SetImage(web, "web@sha256:ab")
    assert scaled("deploy/web=0") == Scale(web, 0)
    assert node_count("node-1") == ("node-1", 1)
    assert node_count("node-1=3") == ("node-1", 3)
    assert metric("deploy/web=cpu:120%", "") == Metric("", "Deployment", "web", "cpu", 120.0)
    assert metric("sts/db=queue:1500m", "shop") == Metric("shop", "StatefulSet", "db", "queue", None, 1500.0)


@pytest.mark.parametrize(
    ("read", "word"),
    [
        *((lambda word: target(word, "--x"), word) for word in ("", "web", "/web", "deploy/", "a/b/c/d")),
        *((set_image, word) for word in ("deploy/web", "deploy/web=", "web=x", "deploy/web==x")),
        *((scaled, word) for word in ("deploy/web", "deploy/web=-1", "deploy/web=1.5", "deploy/web=99999999999")),
        (scaled, f"deploy/web={'9' * 5000}"),
        (node_count, f"n={'9' * 5000}"),
        *((read, f"deploy/web={sign}1") for read in (scaled, node_count) for sign in "+-_ "),
        *((node_count, word) for word in ("n=0", "n=x", "n=99999", "n=")),
        *((lambda word: metric(word, ""), word) for word in ("deploy/web", "deploy/web=cpu", "deploy/web=cpu:x%")),
        *((lambda word: metric(word, ""), word) for word in ("deploy/web=cpu:nan%", "deploy/web=:5")),
    ],
)
def test_arguments_that_are_refused(read: object, word: str) -> None:
    with pytest.raises(BadWord) as raised:
        read(word)  # type: ignore[operator]
    assert "\n" not in str(raised.value)
