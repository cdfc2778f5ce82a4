"""Nets on sequences of token ids."""

from numbers import Integral
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from skdp._docs import document
from skdp.base import check_number
from skdp.fitting.targets import Problem
from skdp.nn.architectures import lstm
from skdp.nn.layers.embedding import LARGEST
from skdp.nn.mlp import layer_sizes
from skdp.nn.model import NetClassifier
from skdp.nn.network import Network
from skdp.nn.tokens import token_rows

__all__ = ["DPLSTMClassifier"]


class SequenceNet(NetClassifier):
    """A net whose records are sequences of ids, all of one public length."""

    vocabulary_size: Any
    max_length: Any
    n_features: Any
    n_units: Any
    bidirectional: Any
    hidden_layer_sizes: Any

    input_range = None  # ids are no quantities, so nothing scales them

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False  # a table of any numbers is not accepted
        tags.input_tags.sparse = False
        return tags

    def _check_parameters(self) -> None:
        super()._check_parameters()
        for name, of_what in (
            ("vocabulary_size", "different tokens, the largest id"),
            ("max_length", "tokens that are read of each record"),
        ):
            if getattr(self, name) is None:
                raise ValueError(
                    f"{name} must be given: the public number of {of_what}. It is not taken from the records, "
                    "because one of them would then show in it"
                )
        check_number("vocabulary_size", self.vocabulary_size, Integral, low=1, high=LARGEST - 1)
        check_number("max_length", self.max_length, Integral, low=1)
        check_number("n_features", self.n_features, Integral, low=1)
        check_number("n_units", self.n_units, Integral, low=1)
        if not isinstance(self.bidirectional, (bool, np.bool_)):
            raise TypeError(f"bidirectional must be True or False, got {self.bidirectional!r}")
        for size in layer_sizes(self.hidden_layer_sizes):
            check_number("hidden_layer_sizes", size, Integral, low=1)

    def _standardizes(self, problem: Problem) -> bool:
        return False

    def _network(self, shape: tuple[int, ...], n_outputs: int) -> Network:
        return lstm(
            int(self.vocabulary_size), n_outputs,
            n_features=int(self.n_features), n_units=int(self.n_units),
            bidirectional=bool(self.bidirectional),
            hidden_layer_sizes=layer_sizes(self.hidden_layer_sizes),
        ).build(shape)  # fmt: skip

    def fit(self, X: object, y: object, *, groups: object = None, **more: object) -> Self:
        """Fit the net privately.

        Parameters
        ----------
        X : array-like of shape (n_samples, length), or sequence of n_samples sequences of any lengths
            Token ids from 1 to ``vocabulary_size``. 0 is padding, wherever it stands, and is left out. Of the
            tokens the first ``max_length`` are read.
        y : array-like of shape (n_samples,)
            Labels.
        groups : array-like of shape (n_samples,), default=None
            Who each record belongs to, such as its author; needed by, and allowed with, ``unit="group"`` only.
        **more : dict
            ``sample_weight=None`` or nothing: nets have no weighted form.

        Returns
        -------
        self : estimator

        Raises
        ------
        TypeError, ValueError
            If a parameter or the data are not as described. No budget is spent.
        PrivacyBudgetExceeded
            If the accountant does not hold (epsilon, delta). Nothing was read.
        PrivacyAccountingError
            If the ledger costs more than the claim, which is a bug in skdp. The result is discarded.
        """
        return super().fit(X, y, groups=groups, **more)

    def read(self, X: Any, y: Any = None, groups: Any = None, **weights: Any) -> Problem:
        """Check the ids of each record and the labels."""
        return super().read(self._table(X, {}), y, groups, **weights)

    def _table(self, X: Any, seen: Any) -> NDArray[np.float32]:
        return token_rows(X, int(self.max_length), int(self.vocabulary_size))

    def _assumptions(self, problem: Problem) -> tuple[str, ...]:
        own = "vocabulary_size, max_length and the vocabulary itself were not chosen by looking at these records"
        return (*super()._assumptions(problem), own)

    def _outputs(self, X: Any) -> NDArray[np.float64]:
        check_is_fitted(self)
        (length,), layers = self.network_.shapes[0], self.network_.sequential.layers
        return super()._outputs(token_rows(X, length, layers[0].vocabulary_size))  # type: ignore[attr-defined]


@document()
class DPLSTMClassifier(SequenceNet):
    """A recurrent net for text, by differentially private SGD.

    Each token has a learned vector. A long short-term memory reads the vectors in both directions, and dense
    layers map the mean of its states to classes. Training takes steps along noisy clipped gradients of
    minibatches, as in [Abadi2016]_.

    {guarantee}

    {recalibrated}

    Parameters
    ----------
    {epsilon} {delta}
    vocabulary_size : int, default=None
        Public number of different tokens, below 2**24: ids are 1, ..., ``vocabulary_size``. Required; it is never
        the largest id of the records.
    max_length : int, default=None
        Public number of tokens that are read of each record. Required; it is never the longest row of the
        records.
    n_features : int, default=64
        Length of a token's vector.
    n_units : int, default=64
        Length of the state of each direction.
    bidirectional : bool, default=True
        Whether a second memory reads from the last token to the first.
    hidden_layer_sizes : tuple of int, default=()
        Number of units of dense layers with ReLU before the last.
    {batch_size.net} {max_iter.net} {n_epochs} {sampling.net} {learning_rate.net} {schedule.net}
    {momentum.net} {solver.net}
    {smoothing.net} {average.net} {clip_norm.net} {clipping} {microbatch_size} {n_projections}
    {recursive} {sparsification} {select}
    {classes}
    {parameters_init}
    {adjacency.net} {unit} {max_rows_per_group} {n_public} {validation} {accountant} {random_state} {verbose}
    {callback.net}

    Attributes
    ----------
    {parameters_} {network_} {inputs_} {calibration_}
    {classes_} {n_iter_} {batch_size_} {learning_rate_.net} {clip_norm_} {sparsity_}
    {privacy_}
    n_features_in_ : int
        ``max_length`` of the fit.

    See Also
    --------
    skdp.DPLogisticRegression : On counts of public words; often better for few documents.
    DPNetworkClassifier : Any net of `skdp.nn` layers.

    Notes
    -----
    {privacy.net}

    The vocabulary must be public too: one that is counted on the private documents shows their words. Noise goes
    to the vectors of all tokens in each step, also of those that no document holds.

    {privacy.unprotected}

    References
    ----------
    .. [Abadi2016]

    Examples
    --------
    >>> import numpy as np
    >>> from skdp import DPLSTMClassifier
    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(0, 2, 2000)
    >>> X = [rng.integers(1, 11, rng.integers(3, 8)) + 5 * label for label in y]
    >>> model = DPLSTMClassifier(
    ...     epsilon=4.0, vocabulary_size=15, max_length=6, n_features=8, n_units=8, classes=(0, 1)
    ... )
    >>> model.fit(X, y).score(X, y) > 0.8
    True
    """

    def __init__(
        self,
        *,
        epsilon=1.0,
        delta=1e-5,
        vocabulary_size=None,
        max_length=None,
        n_features=64,
        n_units=64,
        bidirectional=True,
        hidden_layer_sizes=(),
        batch_size="auto",
        max_iter="auto",
        n_epochs=None,
        sampling="poisson",
        learning_rate="auto",
        schedule="linear",
        momentum=0.9,
        solver="sgd",
        smoothing=0.0,
        average=None,
        clip_norm="adaptive",
        clipping="auto",
        microbatch_size=8,
        n_projections=20,
        recursive=None,
        sparsification=None,
        select=None,
        classes=None,
        parameters_init=None,
        adjacency="zero-out",
        unit="record",
        max_rows_per_group=None,
        n_public=None,
        validation=None,
        accountant=None,
        random_state=None,
        verbose=False,
        callback=None,
    ):
        self.epsilon = epsilon
        self.delta = delta
        self.vocabulary_size = vocabulary_size
        self.max_length = max_length
        self.n_features = n_features
        self.n_units = n_units
        self.bidirectional = bidirectional
        self.hidden_layer_sizes = hidden_layer_sizes
        self.batch_size = batch_size
        self.max_iter = max_iter
        self.n_epochs = n_epochs
        self.sampling = sampling
        self.learning_rate = learning_rate
        self.schedule = schedule
        self.momentum = momentum
        self.solver = solver
        self.smoothing = smoothing
        self.average = average
        self.clip_norm = clip_norm
        self.clipping = clipping
        self.microbatch_size = microbatch_size
        self.n_projections = n_projections
        self.recursive = recursive
        self.sparsification = sparsification
        self.select = select
        self.classes = classes
        self.parameters_init = parameters_init
        self.adjacency = adjacency
        self.unit = unit
        self.max_rows_per_group = max_rows_per_group
        self.n_public = n_public
        self.validation = validation
        self.accountant = accountant
        self.random_state = random_state
        self.verbose = verbose
        self.callback = callback
