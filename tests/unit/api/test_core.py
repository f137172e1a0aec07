"""Views of the core group share common values."""

from kcm_cli.api.core import PODS, Pod


def _pod(name: str, seconds: int) -> Pod:
    text = f"""{{"metadata": {{"name": "{name}"}}, "spec": {{"tolerations": [
        {{"key": "node.kubernetes.io/not-ready", "operator": "Exists", "tolerationSeconds": {seconds}}}]}}}}"""
    return PODS.decode(text.encode())


def test_pods_share_equal_tolerations() -> None:
    one, same, other = _pod("a", 300), _pod("b", 300), _pod("c", 301)
    assert one.spec.tolerations is same.spec.tolerations
    assert [t.toleration_seconds for pod in (one, other) for t in pod.spec.tolerations] == [300, 301]
