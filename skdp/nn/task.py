"""The task of a run: the net, how rows and targets become its numbers, its loss, and where it starts."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from os import PathLike
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from skdp.fitting.noisy_mean import Clipping, Gradients, PiecesOf, TouchedRows, each_once
from skdp.kernels import is_cupy, on_host
from skdp.kernels.protocols import Matrix
from skdp.nn.arrays import Array, array_module
from skdp.nn.inputs import Inputs
from skdp.nn.layers.embedding import Embedding
from skdp.nn.layout import Layout
from skdp.nn.losses import CrossEntropy, SquaredError
from skdp.nn.network import Network, RecordGradients, Sequential
from skdp.privacy import Piece, PieceKinds, SparseRows, Vectors, check_batch_independence

__all__ = [
    "NetLoss",
    "NetTask",
    "Targets",
    "has_other_layers",
    "outputs_of",
    "require_batch_independence",
    "start_of",
    "tokens_of",
    "vocabulary_of",
]

Vector = NDArray[np.float64]
NetLoss = CrossEntropy | SquaredError
ROWS = 512  # rows of a prediction whose outputs are computed at once; a choice, not tuned
AT_ONCE = 64  # rows of a call in a private step: as many as `check_batch_independence` gives
SPREAD = 0.1  # of the parameters with which layers of users are looked at; a choice, not tuned


@dataclass(frozen=True)
class Targets:
    """The map from stored targets to targets of the loss; released or public numbers.

    Attributes
    ----------
    center, half_width : float
        A number y becomes ``(y - center) / half_width``, clipped to [-1, 1]. A half-width of 0 leaves class
        numbers alone.
    """

    center: float = 0.0
    half_width: float = 0.0

    def of(self, y: Array | None) -> Array:
        """Targets of the loss."""
        if self.half_width == 0:
            return np.asarray(y)
        with np.errstate(all="ignore"):  # a warning would tell of a value
            return np.asarray(np.clip((cast("Array", y) - self.center) / self.half_width, -1.0, 1.0))

    def back(self, outputs: Vector) -> Vector:
        """Predictions of outputs, kept within the range of the targets."""
        return self.center + self.half_width * np.clip(outputs, -1.0, 1.0)


@dataclass(frozen=True, eq=False)
class NetTask:
    """The net, loss and start of the steps.

    Attributes
    ----------
    network : Network
    loss : CrossEntropy or SquaredError
    inputs : Inputs
    targets : Targets
    start : ndarray of shape (n_parameters,)
        All parameters, frozen layers included.
    """

    network: Network
    loss: NetLoss
    inputs: Inputs
    targets: Targets
    start: NDArray[np.float32]

    @cached_property
    def _learning(self) -> NDArray[np.bool_] | slice:
        """Where the trained parameters are; a slice of all is much faster than a mask."""
        trainable = self.network.trainable
        return slice(None) if trainable.all() else trainable

    @property
    def tensors(self) -> tuple[slice, ...]:
        """Where each trained tensor lies in the vector of trained parameters."""
        frozen = self.network.sequential.frozen
        shapes = tuple(own for i, own in enumerate(self.network.parameter_shapes) if i not in frozen)
        return tuple(place for _, _, _, place in Layout(shapes).entries)

    def trained(self, flat: np.ndarray) -> Vector:
        """The parameters that the steps change."""
        return flat[self._learning].astype(np.float64)

    def whole(self, theta: np.ndarray) -> NDArray[np.float32]:
        """All parameters, of those that the steps change; read-only, so that no layer keeps numbers in them."""
        if theta.dtype == np.float32 and theta.size == self.start.size:
            flat = theta.view()  # for tables of millions of words a copy is most of a step
        else:
            flat = self.start.copy()
            flat[self._learning] = theta
        flat.flags.writeable = False
        return flat

    def record_outputs(self, parameters: NDArray[np.float32], X: Matrix) -> Vector:
        """Outputs of private rows: calls get 64 rows and one thread of BLAS, as in `require_batch_independence`.

        A call's shapes then tell nothing of the number of rows, which groups keep private.
        """
        from skdp.kernels import one_blas_thread

        with one_blas_thread():
            return outputs_of(self.network, parameters, self.inputs, X, at_once=AT_ONCE)

    def gradients(self, clipping: Clipping) -> Gradients:
        """The mechanism that releases the gradients of the trained parameters."""
        at, layer = self.gradients_at(clipping.layers), self.network.sequential.layers[0]
        if not isinstance(layer, Embedding) or 0 in self.network.sequential.frozen:
            return Gradients(self.network.n_trainable, at, ready=self.is_ready)
        n_rows, width = int(layer.vocabulary_size), int(layer.n_features)

        def touched(X: Matrix, y: Array | None) -> list[SparseRows]:
            return each_once(layer.rows_of(self.inputs.of(X)), n_rows)

        def entries(kept: NDArray[np.int64]) -> NDArray[np.int64]:
            # The table is the first trained tensor; all other entries change in every step.
            inside = (kept[:, None] * width + np.arange(width)).ravel()
            return np.concatenate([inside, np.arange(n_rows * width, self.network.n_trainable)])

        return Gradients(
            self.network.n_trainable,
            at,
            TouchedRows(n_rows, PieceKinds().of(touched) if self.is_ready else touched, entries),
            self.is_ready,
        )

    def gradients_at(self, method: str | Sequence[str]) -> Callable[[np.ndarray], PiecesOf]:
        """The callback of `PrivateRecords.gradient_sum`, of trained parameters; see `Network.record_gradients`."""

        of_rows, kinds = RecordGradients(self.network, method), PieceKinds()
        # A layer of the user's own may change the kinds of its pieces between two steps. It is looked at in every
        # step, before the batch is drawn: a refusal then does not tell whether a batch was empty.

        def at(theta: np.ndarray) -> PiecesOf:
            flat = self.whole(theta)

            def pieces(X: Matrix, y: Array | None) -> list[Piece]:
                x, targets = self.inputs.of(X), self.targets.of(y)
                there = flat if isinstance(x, np.ndarray) else array_module(x).asarray(flat)
                return of_rows(there, x, lambda outputs: self.loss.derivative(outputs, targets))

            return kinds.of(pieces) if self.is_ready else pieces

        return at

    @property
    def is_ready(self) -> bool:
        """Whether all layers are skdp's own."""
        return not has_other_layers(self.network.sequential)


def has_other_layers(net: Sequential) -> bool:
    """Whether the class of a layer, or of the net, is not from skdp.nn."""
    return not all(type(part).__module__.startswith("skdp.nn.") for part in (net, *net.layers))


def tokens_of(network: Network) -> int | None:
    """Tokens of a record, where the net begins with an Embedding."""
    first = network.sequential.layers[0]
    return math.prod(network.shapes[0]) if isinstance(first, Embedding) else None


def vocabulary_of(net: Sequential) -> int | None:
    """How many ids the embedding of a net knows; None for a net without one."""
    return next((layer.vocabulary_size for layer in net.layers if isinstance(layer, Embedding)), None)


def require_batch_independence(
    network: Network, method: str | tuple[str, ...], dtype: str, device: str = "cpu"
) -> None:
    """Refuse a net or a machine for which a row's gradient, or its outputs, depend on more than this row.

    `PrivateRecords.gradient_sum` rests on the gradients, the last releases of `skdp.nn.calibration` on the
    outputs. A layer can mix rows in its outputs alone, such as one whose backward is 0. The rows and the targets
    are made up. Nets of ready layers are looked at once. Layers of users are looked at in every fit: they may
    change, and two that compare as equal may compute other things.

    Parameters
    ----------
    network : Network
    method : {"materialized", "ghost"} or tuple of them
        Of all layers, or one for each.
    dtype : {"float32", "float64"}
        Of the rows.
    device : {"cpu", "cuda"}, default="cpu"
        Where they lie.

    Raises
    ------
    UnsupportedAccounting
        If `check_batch_independence` refuses the net.
    """
    if has_other_layers(network.sequential):
        _look(network, method, dtype, device)
    else:
        _look_once(network.sequential, network.shapes[0], method, dtype, device)


def _look(network: Network, method: str | tuple[str, ...], dtype: str, device: str) -> None:
    net, shape = network.sequential, network.shapes[0]
    k = network.shapes[-1][0]
    inputs = Inputs(np.zeros(()), np.ones(()), (-math.inf, math.inf), shape)
    loss = CrossEntropy(k) if k > 1 else SquaredError()
    rng = np.random.default_rng(0)  # nothing here is private
    start = network.initialize(rng)
    if has_other_layers(net):  # a parameter that starts at 0 may multiply what mixes rows
        start += SPREAD * rng.standard_normal(start.size, dtype=np.float32)
    task = NetTask(network, loss, inputs, Targets(), start)
    flat = task.whole(task.trained(start))
    gradients = task.gradients_at(method)(task.trained(start))

    def function(X: Matrix, y: Array | None) -> list[Piece]:
        return [*gradients(X, y), Vectors(task.record_outputs(flat, X))]

    size = vocabulary_of(net)
    looked_at = function if size is None else _on_ids(function, size)
    check_batch_independence(looked_at, math.prod(shape), dtype, targets=np.arange(64) % k, device=device)


def _on_ids(function: PiecesOf, size: int) -> PiecesOf:
    """The function of ids that are made of normal numbers: a third is padding, also between tokens."""

    def pieces(X: Any, y: Array | None) -> Sequence[Piece]:
        xp = array_module(X)
        with np.errstate(all="ignore"):
            ids = xp.floor(abs(X) * X.dtype.type(1e4)) % X.dtype.type(size) + X.dtype.type(1)
            ids = xp.where(abs(X) < 0.4, X.dtype.type(0), ids)
            # Numbers that are no ids stay as they are.
            return function(xp.where(abs(X) < 1e3, ids, X), y)

    return pieces


@lru_cache(maxsize=64)
def _look_once(
    net: Sequential, shape: tuple[int, ...], method: str | tuple[str, ...], dtype: str, device: str
) -> None:
    _look(net.build(shape), method, dtype, device)


def outputs_of(
    network: Network, parameters: NDArray[np.float32], inputs: Inputs, X: Matrix, *, at_once: int | None = None
) -> Vector:
    """Outputs of shape (n_rows, n_outputs) for a table.

    Parameters
    ----------
    at_once : int, default=None
        Rows of every call of the net, of which the last are filled up with zeros. None is up to 512 rows for
        predictions, filled up on a device alone, where a library may choose its code by shapes.
    """
    found = np.empty((X.shape[0], network.shapes[-1][0]))
    flat = array_module(X).asarray(parameters) if is_cupy(X) else parameters
    filled = at_once is not None or is_cupy(X)
    step = ROWS if at_once is None else at_once
    for first in range(0, X.shape[0], step):
        part = X[slice(first, first + step)]
        count = part.shape[0]
        outputs = network.forward(flat, inputs.of(_filled(part, step) if filled else part))
        found[first : first + count] = on_host(outputs)[:count]
    return found


def _filled(X: Matrix, n_rows: int) -> Matrix:
    """An array of ``n_rows`` rows, which begins with X."""
    X = X.toarray() if hasattr(X, "toarray") else X
    if len(X) == n_rows:
        return X
    filled = array_module(X).zeros((n_rows, X.shape[1]), dtype=X.dtype)
    filled[: len(X)] = X
    return filled


def start_of(parameters_init: object, network: Network) -> NDArray[np.float32]:
    """Parameters of a released model: a vector, or the file that `Network.save` wrote."""
    if isinstance(parameters_init, (str, PathLike)):
        return network.load(parameters_init)
    try:
        flat = np.array(parameters_init, dtype=np.float32)
    except (TypeError, ValueError):
        raise TypeError(
            "parameters_init must be numbers, such as parameters_ of a fitted model, or the path of a file, got "
            f"{type(parameters_init).__name__}"
        ) from None
    if flat.shape != (network.n_parameters,) or not np.isfinite(flat).all():
        raise ValueError(
            f"parameters_init must be {network.n_parameters} finite numbers, or a file of them, "
            f"got shape {flat.shape}" + (", and not all are finite" if not np.isfinite(flat).all() else "")
        )
    return flat
