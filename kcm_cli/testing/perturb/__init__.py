"""An operator under perturbation: crashed, cut off, refused, shown old states, at each point of its work.

Reference runs record what the operator writes and sees. Each point of that record is then a run of its own, with one
thing gone wrong at it; afterwards the cluster has to be what it was without. After Sieve (Sun et al., OSDI 2022).
"""
