"""The losses that kernels compute: a row of `LOSSES` for each, of which passes and CUDA program are made.

A row names the class in `skdp.losses`, which has the facts, and says how kernels compute derivative and value. A
new loss is such a class and such a row; its code is its place in the table. Passes take the code and one
parameter, and choose the function by the code. `code_of` refuses a loss without a row; a code without a row gives
NaN, so that no record adds anything.

Privacy: the result of a function follows from its arguments alone, with the same bits for a row at every place of
a block, because each operation is rounded by itself.
"""

import math
from typing import NamedTuple

import numpy as np

from skdp.kernels.numba_jit import Compiled, inner_jit, jit_inlined
from skdp.kernels.protocols import KernelLoss
from skdp.losses import HuberLoss, LogisticLoss, MultinomialLoss, SquaredLoss

# A square below 2**-1022 may become zero; over m entries that takes at most sqrt(m) * 2**-511 from
# a norm.
UNDERFLOW = 2.0**-511


class GivenDerivatives:
    """A loss whose derivatives and values were computed before the pass, in place of the targets."""

    name = "given"
    n_outputs = 1


class Cuda(NamedTuple):
    """A loss in C, of ``score``, ``target`` and ``parameter``; with several outputs of ``r[0]`` to ``r[K - 1]``.

    Attributes
    ----------
    derivative : str
        An expression; with several outputs, of the entry ``k``.
    value : str
        An expression.
    start : str
        Statements before both.
    """

    derivative: str
    value: str
    start: str = ""


class CompiledLoss(NamedTuple):
    """How kernels compute a loss.

    Attributes
    ----------
    loss : type
        The class of the loss, which is no subclass.
    derivative : function
        Of (parameter, score, target, weight), times the weight; numba compiles it. With several outputs it
        replaces the scores of a row by its derivatives and returns the sum of their squares.
    value : function
        Of the same arguments, times the weight.
    cuda : Cuda
    parameter : str, default=""
        Name of the attribute that kernels need, if any.
    several : bool, default=False
        Whether a row has several outputs.
    """

    loss: type
    derivative: Compiled
    value: Compiled
    cuda: Cuda
    parameter: str = ""
    several: bool = False


# ---------------------------------------------------------------- the functions of the rows

# exp(-k / 8) for k < 6000; the remaining factor lies within 1/16 of 1 in the exponent.
# The last ones are subnormal, and the caller may have that raised.
with np.errstate(under="ignore"):
    _DECAYS = np.exp(-np.arange(6000) / 8.0)


@jit_inlined
def decay(t):
    """exp(-t) for t >= 0 with a relative error below 1e-15; NaN and numbers above 749 count as 749.

    It is short enough to be inlined. A call of the mathematical library would cost the dense kernels a third of
    their speed.
    """
    if not t < 749.0:
        t = 749.0
    k = np.rint(8.0 * t)
    f = 0.125 * k - t
    series = 1.0 + f * (1.0 / 7.0) * (1.0 + f * 0.125)
    series = 1.0 + f * 0.25 * (1.0 + f * 0.2 * (1.0 + f * (1.0 / 6.0) * series))
    series = 1.0 + f * (1.0 + f * 0.5 * (1.0 + f * (1.0 / 3.0) * series))
    return _DECAYS[np.uint64(np.int64(k))] * series


def _squared(parameter, score, target, weight):
    return (score - target) * weight


def _squared_value(parameter, score, target, weight):
    size = abs(score - target)
    return 0.5 * size * size * weight


def _huber(parameter, score, target, weight):
    return min(max(score - target, -parameter), parameter) * weight


def _huber_value(parameter, score, target, weight):
    size = abs(score - target)
    inner = min(size, parameter)
    return (0.5 * inner * inner + parameter * (size - inner)) * weight


def _logistic(parameter, score, target, weight):
    tail = decay(abs(score))
    value = 1.0 / (1.0 + tail)
    if score < 0.0:
        value *= tail
    return (value - target) * weight


def _logistic_value(parameter, score, target, weight):
    return (max(score, 0.0) - score * target + math.log1p(math.exp(-abs(score)))) * weight


def _softmax(parameter, z, target, weight):
    top = z[0]
    for k in range(1, z.size):
        top = max(top, z[k])
    total = 0.0
    for k in range(z.size):
        z[k] = decay(top - z[k]) + (z[k] - z[k])
        total += z[k]
    square = 0.0
    for k in range(z.size):
        value = z[k] / total
        if k == np.int64(target):
            value -= 1.0
        value *= weight
        z[k] = value
        square += value * value
    return square


def _softmax_value(parameter, z, target, weight):
    top = z[0]
    for k in range(1, z.size):
        top = max(top, z[k])
    total = 0.0
    wrong = 0.0
    for k in range(z.size):
        total += math.exp(z[k] - top)
        wrong += z[k] - z[k]
    return (math.log(total) + (top - z[np.int64(target)]) + wrong) * weight


def _given(parameter, score, target, weight):
    return target * weight


LOSSES = (
    CompiledLoss(
        SquaredLoss, _squared, _squared_value, Cuda("score - target", "0.5 * (score - target) * (score - target)")
    ),
    CompiledLoss(
        HuberLoss,
        _huber,
        _huber_value,
        Cuda(
            "fmin(fmax(score - target, -parameter), parameter)",
            "0.5 * inner * inner + parameter * (size - inner)",
            "double size = fabs(score - target), inner = fmin(size, parameter);",
        ),
        parameter="threshold",
    ),
    CompiledLoss(
        LogisticLoss,
        _logistic,
        _logistic_value,
        Cuda(
            "(score < 0 ? tail : 1.0) / (1.0 + tail) - target",
            "fmax(score, 0.0) - score * target + log1p(tail)",
            "double tail = exp(-fabs(score));",
        ),
    ),
    CompiledLoss(
        MultinomialLoss,
        _softmax,
        _softmax_value,
        Cuda(
            "exp(r[k] - top) / total - (k == (int)target ? 1.0 : 0.0) + wrong",
            "log(total) + (top - r[(int)target]) + wrong",
            "double top = r[0], total = 0, wrong = 0;\n"
            "        for (int k = 0; k < K; ++k) { top = fmax(top, r[k]); wrong += r[k] - r[k]; }\n"
            "        for (int k = 0; k < K; ++k) total += exp(r[k] - top);",
        ),
        several=True,
    ),
    CompiledLoss(GivenDerivatives, _given, _given, Cuda("target", "target")),
)

_CODES = {row.loss: code for code, row in enumerate(LOSSES)}


def is_compiled(loss: object) -> bool:
    """Whether kernels compute a loss: its class has a row, so a subclass has none."""
    return type(loss) in _CODES


def code_of(loss: KernelLoss) -> tuple[int, float]:
    """The code of a loss and its parameter, for compiled passes; TypeError for a loss without a row."""
    if not is_compiled(loss):
        raise TypeError(
            f"this sum has compiled passes for the losses of skdp.losses only, not for {type(loss).__name__}"
        )
    code = _CODES[type(loss)]
    parameter = LOSSES[code].parameter
    return code, float(getattr(loss, parameter)) if parameter else 0.0


# ---------------------------------------------------------------- what passes call


def chosen(what: str, several: bool) -> Compiled:
    """One compiled function that calls the derivative or the value of a code's row; NaN for another code."""
    found = jit_inlined(lambda code, parameter, score, target, weight: np.nan)
    for code, row in reversed(list(enumerate(LOSSES))):
        if row.several == several:
            found = _first(code, jit_inlined(getattr(row, what)), found)
    return found


def _first(number: int, function: Compiled, others: Compiled) -> Compiled:
    def choose(code, parameter, score, target, weight):
        if code == number:
            return function(parameter, score, target, weight)
        return others(code, parameter, score, target, weight)

    return jit_inlined(choose)


_one, _several = chosen("derivative", several=False), chosen("derivative", several=True)


@inner_jit
def one_derivative(code, parameter, score, target):
    """Derivative of a loss with one output; NaN if the score is not finite."""
    return _one(code, parameter, score, target, 1.0) + (score - score)


@inner_jit
def derivatives(code, parameter, z, target, weight):
    """Replace the linear predictors ``z`` of one row by weighted derivatives; bound their norm."""
    if z.size == 1:
        z[0] = one_derivative(code, parameter, z[0], target) * weight
        return abs(z[0])
    return several_derivatives(code, parameter, z, target, weight)


@inner_jit
def several_derivatives(code, parameter, z, target, weight):
    """The same for a loss with several outputs."""
    square = _several(code, parameter, z, target, weight)
    return np.sqrt(square) + np.sqrt(z.size) * UNDERFLOW


@inner_jit
def target_of(y, i, point):
    """Target of row i; where targets differ between points, the target at ``point``."""
    if y.ndim == 1:
        return y[i]
    return y[i, point]


def cuda_losses() -> str:
    """The functions of the CUDA program that depend on the loss."""
    one = [row for row in LOSSES if not row.several]
    several = [row for row in LOSSES if row.several]
    codes = {row.loss: f"    if (code == {code}) {{ {row.cuda.start}\n" for code, row in enumerate(LOSSES)}
    of_one = "(int code, double parameter, double score, double target) {\n"
    of_several = "(int code, double parameter, double* r, int K, double target"
    unknown = '    return nan("");\n}\n'
    parts = []
    for what in ("derivative", "value"):
        parts.append(f"__device__ double loss_{what}{of_one}")
        parts += [
            f"{codes[row.loss]}        return {getattr(row.cuda, what)} + (score - score); }}\n" for row in one
        ]
        parts.append(unknown)
    parts.append(f"__device__ double several_value{of_several}) {{\n")
    parts += [f"{codes[row.loss]}        return {row.cuda.value}; }}\n" for row in several]
    parts.append(unknown)
    # All lanes compute each entry, and meet before one of them writes it, because the next ones are read.
    parts.append(
        f"__device__ double several_derivatives{of_several}, double w, int lane) {{\n    double square = 0;\n"
    )
    for row in several:
        parts.append(
            f"{codes[row.loss]}        for (int k = 0; k < K; ++k) {{\n"
            f"            double value = ({row.cuda.derivative}) * w;\n"
            "            __syncwarp();\n"
            "            if (lane == 0) r[k] = value;\n"
            "            square += value * value;\n"
            "        }\n        return square; }\n"
        )
    return "".join([*parts, unknown])
