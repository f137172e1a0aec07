"""What writes files of the project: the data of the sandbox's API server, run by hand when the version of Kubernetes
changes, and the documents of ``make docs``.
"""
