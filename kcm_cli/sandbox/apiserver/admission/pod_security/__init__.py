"""PodSecurity (see ``pod_security.admission``)."""
