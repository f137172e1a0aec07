"""Warnings for clients whose request succeeds (``Warning`` headers).

upstream: pkg/api/*/warnings.go, pkg/api/{node,storage,persistentvolume,persistentvolumeclaim}/util.go,
pkg/registry/*/*/strategy.go
"""
