"""Perturbs an operator: crashes, lost answers, rejected requests and stale reads, at each point of its work.

Reference runs record what the operator writes and sees. Each point of that record is then a separate run in which one
thing goes wrong there. In the end the cluster must be in the same state as without it. After Sieve (Sun et al., OSDI
2022).
"""
