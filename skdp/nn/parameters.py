"""The parameters of nets, each declared once; `skdp.nn.net_fit` has the fit that reads them."""

from os import PathLike
from typing import ClassVar, Literal

from numpy.typing import ArrayLike

from skdp.base.declare import parameter, word_or_object
from skdp.base.kinds import choice, described, integer
from skdp.fitting.columns import check_bounds
from skdp.fitting.minibatches import MinibatchFit
from skdp.fitting.recursive import RecursiveMomentum
from skdp.fitting.selection import AdaFEST, SparseSelection
from skdp.fitting.sparsification import RandomSparsification
from skdp.fitting.targets import Problem
from skdp.nn.checks import check_clipping, check_validation
from skdp.nn.clipping import Microbatch, Projections
from skdp.nn.decision import SAMPLING

CLIPPING = ("auto", "materialized", "ghost", "one-by-one")
Clip = Literal["auto", "materialized", "ghost", "one-by-one"] | Microbatch | Projections
MeanOrEstimator = Literal["mean"] | RecursiveMomentum | RandomSparsification | SparseSelection | AdaFEST
GRADIENT_ESTIMATORS = (RecursiveMomentum, RandomSparsification, SparseSelection, AdaFEST)


class NetParameters(MinibatchFit[Problem]):
    """The parameters of every net."""

    sampling: Literal["poisson", "partition"] = parameter(
        choice(*SAMPLING),
        """How batches are drawn. "partition" divides the records at random into batches, anew in each epoch, so
        that each is in one of them. Nothing is amplified then: the noise is larger, and epsilon does not rest on
        secret batches. Steps are whole epochs unless ``max_iter`` is given.""",
        default="poisson",
    )
    clipping: Clip = parameter(
        word_or_object(*CLIPPING, types=(Microbatch, Projections)),
        """How gradients are clipped (user guide). The words give the same up to rounding. "auto" is "ghost" for
        each convolution with at least 8 times as many weights as one record has numbers in its windows and its
        outputs, and "materialized" for all others. "one-by-one" is the slow reference. `skdp.nn.Microbatch` and
        `skdp.nn.Projections` clip other vectors, and need more noise.""",
        default="auto",
    )
    gradient_estimator: MeanOrEstimator = parameter(
        word_or_object("mean", types=GRADIENT_ESTIMATORS),
        """The release of a step. "mean" is the noisy mean of clipped gradients (DP-SGD).
        `skdp.nn.RecursiveMomentum` also takes from each batch how its gradients changed in the last step (DP-SRM),
        for two gradients of a record in a step. With `skdp.nn.RandomSparsification` a random part of the
        parameters rests in each epoch. With `skdp.nn.SparseSelection` and `skdp.nn.AdaFEST` a step changes chosen
        parameters only, and adds noise to no others.""",
        default="mean",
    )
    input_range: tuple[ArrayLike, ArrayLike] | None = parameter(
        described("tuple of (low, high)", lambda name, given: check_bounds(given, name=name)),
        """Public numbers, or ``([low, ...], [high, ...])`` for each column: values are clipped to them and scaled
        to [0, 1], or to [-1, 1] for images. None releases a window for each column, for at least 10 % of the
        budget (of mu^2), and scales it to [-1, 1].""",
        default=None,
    )
    parameters_init: str | PathLike[str] | ArrayLike | None = parameter(
        described("str, path or array-like of shape (n_parameters,)"),
        """Where to start: parameters of a released model of the same net, or the file that ``save`` wrote. It
        costs no budget. Give both fits one ``input_range``, so that they scale inputs alike. None draws them from
        the key of the fit.""",
        default=None,
    )
    max_rows_per_group: int | None = parameter(
        integer(low=1, none=True),
        """Public. Of a group with more rows, so many are drawn at random and the others are left out.
        None takes all.""",
        default=None,
        place="last",
    )
    validation: tuple[object, object] | None = parameter(
        described("tuple of (X, y)", check_validation),
        """Public data, or a public data set like the private one: the progress bar shows the score on it. Their
        score on private data would be an unpaid release.""",
        default=None,
        releases=False,
        place="last",
    )
    _gone: ClassVar[dict[str, str]] = {
        **MinibatchFit._gone,
        "smoothing": "optimizer=SGD(smoothing=...)",
        "microbatch_size": "clipping=Microbatch(size=...)",
        "n_projections": "clipping=Projections(n_projections=...)",
        "recursive": "gradient_estimator=RecursiveMomentum(...)",
        "sparsification": "gradient_estimator=RandomSparsification(...)",
        "select": "gradient_estimator=SparseSelection(...) or AdaFEST(...)",
    }

    def _check_parameters(self) -> None:
        self._check_targets()  # type: ignore[attr-defined]
        super()._check_parameters()
        check_clipping(self)
        if self.max_rows_per_group is not None and self.unit != "group":
            raise ValueError("max_rows_per_group needs unit='group'")
