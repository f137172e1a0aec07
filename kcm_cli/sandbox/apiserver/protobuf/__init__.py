"""Request bodies in Kubernetes' protobuf form, which Go clients since v1.32 send without being asked to."""
