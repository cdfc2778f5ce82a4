"""Nets on sequences of token ids."""

from collections.abc import Mapping, Sequence
from typing import Self, cast

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from skdp._docs import document
from skdp.base.declare import fitted, fixed, parameter
from skdp.base.fit import PrivateFit
from skdp.base.kinds import Kind, described, flag, integer, required
from skdp.fitting.minibatches import of_width
from skdp.fitting.targets import Problem
from skdp.nn.architectures import lstm
from skdp.nn.layers.embedding import MAX_WORDS
from skdp.nn.mlp import check_sizes, layer_sizes
from skdp.nn.model import NetClassifier
from skdp.nn.network import Network
from skdp.nn.tokens import token_rows
from skdp.privacy import PublicShape


def _public(kind: Kind, of_what: str) -> Kind:
    return required(
        kind,
        f"the public number of {of_what}. It is not taken from the records, because one of them would then "
        "show in it",
    )


class SequenceNet(NetClassifier):
    """A net whose records are sequences of ids, all of one public length."""

    vocabulary_size: int | None = parameter(
        _public(integer(low=1, high=MAX_WORDS - 1), "different tokens, the largest id"),
        """Public number of different tokens, below 2**24: ids are 1, ..., ``vocabulary_size``. Required; it is
        never the largest id of the records.""",
        default=None,
    )
    max_length: int | None = parameter(
        _public(integer(low=1), "tokens that are read of each record"),
        """Public number of tokens that are read of each record. Required; it is never the longest row of
        the records.""",
        default=None,
    )
    n_features: int = parameter(integer(low=1), "Length of a token's vector.", default=64)
    n_units: int = parameter(integer(low=1), "Length of the state of each direction.", default=64)
    bidirectional: bool = parameter(
        flag(), "Whether a second memory reads from the last token to the first.", default=True
    )
    hidden_layer_sizes: int | Sequence[int] = parameter(
        described("int or tuple of int", check_sizes),
        "Number of units of dense layers with ReLU before the last.",
        default=(),
    )
    input_range: None = fixed(default=None)  # ids are no quantities, so nothing scales them
    n_features_in_: int = fitted("int", "``max_length`` of the fit.")
    feature_names_in_: np.ndarray = fitted(is_set=False)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False  # a table of any numbers is not accepted
        tags.input_tags.sparse = False
        return tags

    def _standardizes(self, problem: Problem) -> bool:
        return False

    def _network(self, shape: tuple[int, ...], n_outputs: int) -> Network:
        return lstm(
            int(cast("int", self.vocabulary_size)), n_outputs,
            n_features=int(self.n_features), n_units=int(self.n_units),
            bidirectional=bool(self.bidirectional),
            hidden_layer_sizes=layer_sizes(self.hidden_layer_sizes),
        ).build(shape)  # fmt: skip

    @document(PrivateFit.fit)
    def fit(self, X: object, y: object = None, *, groups: object = None, **more: object) -> Self:
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
        """
        return super().fit(X, y, groups=groups, **more)

    def read(self, X: object, y: object = None, groups: object = None, **weights: object) -> Problem:
        """Check the ids of each record and the labels."""
        return super().read(self._table(X, {}), y, groups, **weights)

    _knows_width = True

    def _imagined(self, shape: PublicShape) -> Problem:
        return super()._imagined(of_width(shape, int(cast("int", self.max_length)), "max_length"))

    def _table(self, X: object, seen: Mapping[str, object]) -> NDArray[np.float32]:
        return token_rows(X, int(cast("int", self.max_length)), int(cast("int", self.vocabulary_size)))

    def _assumptions(self, problem: Problem) -> tuple[str, ...]:
        own = "vocabulary_size, max_length and the vocabulary itself were not chosen by looking at these records"
        return (*super()._assumptions(problem), own)

    def _outputs(self, X: object) -> NDArray[np.float64]:
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
