"""What the server tells clients beside success (``Warning`` headers).

upstream: pkg/api/*/warnings.go, pkg/api/{node,storage,persistentvolume,persistentvolumeclaim}/util.go,
pkg/registry/*/*/strategy.go
"""
