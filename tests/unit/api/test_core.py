"""Views of the core group share common values."""

from kcm_cli.api.core import PODS, Pod


def _pod(name: str, seconds: int, times: int = 1) -> Pod:
    one = f"""{{"key": "node.kubernetes.io/not-ready", "operator": "Exists", "tolerationSeconds": {seconds}}}"""
    text = f"""{{"metadata": {{"name": "{name}"}}, "spec": {{"tolerations": [{", ".join([one] * times)}]}}}}"""
    return PODS.decode(text.encode())


def test_pods_share_equal_tolerations() -> None:
    one, same, other = _pod("a", 300), _pod("b", 300), _pod("c", 301)
    assert one.spec.tolerations is same.spec.tolerations
    assert [t.toleration_seconds for pod in (one, other) for t in pod.spec.tolerations] == [300, 301]


def test_long_lists_of_tolerations_do_not_outlive_their_pod() -> None:
    tolerations = _pod("a", 300, times=10_000).spec.tolerations
    assert len(tolerations) == 10_000
    assert tolerations is not _pod("b", 300, times=10_000).spec.tolerations
