"""Ways to clip gradients that have a number of their own, for ``clipping=`` of nets."""

from sklearn.base import BaseEstimator

from skdp._docs import document
from skdp.base.declare import Declared, positional
from skdp.base.kinds import integer

__all__ = ["Microbatch", "Projections"]


@document()
class Microbatch(Declared, BaseEstimator):
    """Clips the mean gradient of a few records as one, which needs twice the noise.

    Examples
    --------
    >>> from skdp import DPMLPClassifier
    >>> from skdp.nn import Microbatch
    >>> DPMLPClassifier(clipping=Microbatch(4)).get_params()["clipping__size"]
    4
    """

    size: int = positional(integer(low=1), "Number of records whose mean gradient is clipped.", default=8)


@document()
class Projections(Declared, BaseEstimator):
    """Estimates norms of gradients from random projections (DP-SGD-JL); more noise, and seldom faster.

    No proof covers it under ``adjacency="replace-one"``.

    Examples
    --------
    >>> from skdp import DPMLPClassifier
    >>> from skdp.nn import Projections
    >>> DPMLPClassifier(clipping=Projections(40)).clipping
    Projections(n_projections=40)
    """

    n_projections: int = positional(
        integer(low=1),
        "Number of projections, at least 20. More of them need less noise and more time.",
        default=20,
    )
