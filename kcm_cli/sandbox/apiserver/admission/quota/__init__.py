"""ResourceQuota (see ``quota.admission``)."""
