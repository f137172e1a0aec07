"""What the horizontal-pod-autoscaler-controller decides, as pure functions."""
