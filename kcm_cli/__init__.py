"""kube-controller-manager in Python."""

__version__ = "1.36.2.1"
"""The release of Kubernetes whose behaviour kcm has, and the number of kcm's own release for it."""
