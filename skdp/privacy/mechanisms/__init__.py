"""The mechanisms, a folder each: the cost of a release, its recheck, its noise, and the release by a session.

Everything happens on an integer grid whose width is fixed by public numbers before the statistic is computed
(`skdp.privacy.mechanisms.grid`). The proofs are in the folders:

* ``gaussian``: rounded Gaussian noise, on all records or on batches.
* ``laplace``: discrete Laplace noise.
* ``top_k``: the k largest scores, with Gumbel noise.
* ``sparse_vector``: large entries of a long vector, by the sparse vector technique.
* ``objective_perturbation``: the minimiser of a randomly tilted objective.
* ``best_of``: the best of a random number of trials.
* ``projected_gaussian``: sums of gradients that are clipped by norms from random projections.
* ``selected_gaussian``: a few coordinates of a batch's sum, chosen privately, with Gaussian noise.
* ``vocabulary``: the words that enough groups have.
"""
