"""``kcm top``: what a controller manager does, be it kcm or kube-controller-manager, from its /metrics and /healthz."""
