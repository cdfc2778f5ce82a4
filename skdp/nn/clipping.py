"""Ways to clip gradients, for ``clipping=`` of nets: words, and objects that have a number of their own."""

import math
from typing import TYPE_CHECKING, ClassVar

from sklearn.base import BaseEstimator

from skdp._docs import document
from skdp.base.declare import Declared, positional
from skdp.base.kinds import integer
from skdp.fitting.noisy_mean import Clipping
from skdp.nn.layers.conv2d import Conv2D
from skdp.nn.layers.layer import Layer
from skdp.nn.network import Network
from skdp.privacy import check_projected

if TYPE_CHECKING:
    from skdp.nn.net_fit import NetFit

# Weights of a convolution for each number of its windows and signals, from which ghost norms are faster. Measured
# for 1 to 36 windows and up to 2.4 million weights: the two took the same time at 6 to 9.
GHOST_FROM = 8


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
    method: ClassVar[str] = "microbatch"

    def check(self, model: "NetFit") -> None:
        """Raise unless the other parameters of a net fit."""
        if model.unit != "record" or model.n_public is not None:
            raise ValueError(
                "clipping=Microbatch() needs unit='record' and a public number of records (no n_public=): a unit "
                "that comes or goes would move others to other microbatches; use clipping='auto'"
            )

    def of(self, norm: float, network: Network) -> Clipping:
        """The clipping of a net's gradients, materialized in all layers."""
        layers = ("materialized",) * len(network.sequential.layers)
        return Clipping(norm, self.method, microbatch_size=int(self.size), layers=layers)


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
    method: ClassVar[str] = "projections"

    def check(self, model: "NetFit") -> None:
        """Raise unless the other parameters of a net fit."""
        if model.sampling == "partition":
            raise ValueError("clipping=Projections() is proven for Poisson batches only: use sampling='poisson'")
        check_projected(model.adjacency, int(self.n_projections), math.inf)

    def of(self, norm: float, network: Network) -> Clipping:
        """The clipping of a net's gradients."""
        # Inner products with outer products, which ghost norms leave as they are, too.
        layers = ("ghost",) * len(network.sequential.layers)
        return Clipping(norm, self.method, n_projections=int(self.n_projections), layers=layers)


def clipping_of(way: str | Microbatch | Projections, norm: float, network: Network, whole_norms: bool) -> Clipping:
    """The clipping of a net by ``clipping=``; "auto" takes ghost norms only if norms of whole gradients serve."""
    if not isinstance(way, str):
        return way.of(norm, network)
    layers = ("ghost" if way == "ghost" else "materialized",) * len(network.sequential.layers)
    if way != "auto":
        return Clipping(norm, way, layers=layers)
    if whole_norms:
        layers = usual_clipping(network)
    return Clipping(norm, "ghost" if "ghost" in layers else "materialized", layers=layers)


def usual_clipping(network: Network) -> tuple[str, ...]:
    """The choice of "auto" for each layer, from public shapes: ghost norms where they were measured to be faster.

    Let a convolution have p filters of q weights and T windows. A materialized gradient is p q numbers of float32,
    which are written once and read twice. Ghost norms read T (p + q) numbers, in float64.
    """

    def of_layer(position: int, layer: Layer) -> str:
        if type(layer) is not Conv2D or position in network.sequential.frozen:
            return "materialized"
        shape = network.parameter_shapes[position]["weight"]
        p, q, windows = shape[0], math.prod(shape[1:]), math.prod(network.shapes[position + 1][:-1])
        return "ghost" if p * q >= GHOST_FROM * windows * (p + q) else "materialized"

    return tuple(of_layer(i, layer) for i, layer in enumerate(network.sequential.layers))
