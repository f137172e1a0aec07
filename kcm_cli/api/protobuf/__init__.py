"""Kubernetes' protobuf form of objects, which Go clients since v1.32 send by default."""
