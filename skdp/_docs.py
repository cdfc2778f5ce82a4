"""Texts that docstrings of several estimators share, and the decorator that puts them in.

A docstring names a shared text by its key in braces, alone on its line. Several keys may stand side by side.

``{epsilon}`` in a list of parameters or attributes
    becomes the whole entry. Lines that are indented below it are added to its description.
``{alpha}``, indented below a head such as ``alpha : float, default=0.0``
    becomes the description of that entry.
``{guarantee}`` in running text
    becomes that paragraph.
``{Notes}``
    becomes the section of that name in the class that `document` was given.
"""

import re
from collections.abc import Callable
from typing import TypeVar

__all__ = ["TEXTS", "document"]

T = TypeVar("T")

TEXTS: dict[str, str] = {
    "epsilon": """epsilon : float, default=1.0
    Privacy budget, > 0. ``inf`` runs the same algorithm without noise and claims nothing.""",
    "delta": """delta : float, default=1e-5
    Probability with which the epsilon may fail, in (0, 1). Choose it far below 1/n.""",
    "clip_norm": """clip_norm : float or "adaptive", default="adaptive"
    Largest l2 norm of one record's (or group's) gradient. "adaptive" spends 2 % of the budget (of mu^2; up
    to 20 % where records are few) on the median row norm, for groups also on the median gradient norm at the
    start; the clip norm is 0.5 to 1.4 times the median gradient norm at the start, more where the budget
    sees more (user guide). Where ``learning_rate`` and ``clip_norm`` are both numbers nothing is asked.""",
    "penalty": """penalty : {"nonconvex", "l2"}, default="nonconvex"
    ``alpha * sum_j w_j^2 / (1 + w_j^2)``, or ``alpha / 2 * ||w||^2``. The intercept is never penalised.""",
    "alpha": """alpha : float, default=1e-3
    Weight of the penalty, added to the mean loss, >= 0.""",
    "fit_intercept": """fit_intercept : bool, default=True
    Whether to fit an intercept, as the coefficient of a constant feature.""",
    "classes": """classes : sequence of labels, default=None
    The public label set. None infers it from y, warns `PrivacyLeakWarning` and says so in the report.""",
    "classes.2": """classes : sequence of labels, default=None
    The label set; None takes it from y.""",
    "coef_init": """coef_init : array-like, default=None
    Where to start: a released model's ``coef_``, or ``coef_`` with the intercept as a last column.
    Costs nothing.""",
    "adjacency": """adjacency : {"replace-one", "zero-out", "add-remove"}, default="replace-one"
    What a neighbouring data set is. "add-remove" needs ``n_public``.""",
    "unit": """unit : {"record", "group"}, default="record"
    Whose change the claim protects: one row, or all rows of one of ``groups`` in `fit`.""",
    "n_public": """n_public : int, default=None
    Public number that means divide by; None takes the number of records (or groups), which is public
    except under "add-remove".""",
    "max_weight": """max_weight : float, default=None
    Public upper bound of ``sample_weight`` in `fit`, which needs it; weights are clipped to it.""",
    "accountant": """accountant : BudgetAccountant or False, default=None
    Charged with (epsilon, delta) by each fit. None takes that of the innermost ``with accountant:``;
    False charges none, also inside such a block.""",
    "random_state": """random_state : None, int, RandomState or Generator, default=None
    None draws a fresh key from the operating system. Anything else is for tests only: whoever knows
    the seed can subtract the noise.""",
    "verbose": """verbose : bool, default=False
    Whether to show a progress bar.""",
    "verbose.2": """verbose : bool, default=False
    Has no effect: one release shows no progress. It is there as in the other private estimators.""",
    "callback": """callback : callable, default=None
    Called as ``callback(iteration, coef)`` with each released iterate.""",
    "coef_": """coef_ : ndarray of shape (1, n_features) or (n_classes, n_features)""",
    "coef_.2": """coef_ : ndarray of shape (n_features,)""",
    "intercept_": """intercept_ : ndarray of shape (1,) or (n_classes,)""",
    "intercept_.2": """intercept_ : float""",
    "support_": """support_ : ndarray of int64
    Indices of the features whose coefficient is not 0.""",
    "support_.2": """support_ : ndarray of int64
    Indices of the features that are kept, sorted.""",
    "support_.3": """support_ : ndarray of int64
    Indices of the coefficients that are not 0.""",
    "classes_": """classes_ : ndarray of shape (n_classes,)
    The declared labels, sorted, also those absent from y.""",
    "n_iter_": """n_iter_ : int
    Number of steps.""",
    "learning_rate_": """learning_rate_ : float
    The step size given, or the last one that "auto" took.""",
    "clip_norm_": """clip_norm_ : float
    The clip norm given, or the one that was released.""",
    "privacy_": """privacy_ : PrivacyReport
    What this fit cost.""",
    "n_features_in_": """n_features_in_ : int""",
    "feature_names_in_": """feature_names_in_ : ndarray of shape (n_features_in_,)
    Only if X had string column names.""",
    "row_norm_": """row_norm_ : float
    The bound given, or the one that was released.""",
    "alpha_": """alpha_ : float
    The penalty given, or the one that was chosen.""",
    "huber_threshold": """huber_threshold : float, default=1.0
    Residual at which Huber's loss becomes linear, in units of y, > 0.""",
    "y_bounds_": """y_bounds_ : tuple of (float, float)
    The range given, or the one that was released.""",
    "loss": """loss : {"squared", "huber"}, default="squared"
    Huber's loss is linear beyond ``huber_threshold``; squared gradients are clipped all the same.""",
}  # by key

_PLACEHOLDERS = re.compile(r"( *)(\{\w[\w.]*\}(?: \{\w[\w.]*\})*)")
_HEAD = re.compile(r"([\w, ]+) :")
_EXPANDED: dict[type, list[str]] = {}  # lines of each documented class


def document(like: type | None = None) -> Callable[[type[T]], type[T]]:
    """Return a class decorator that puts the shared texts into the docstring.

    Parameters
    ----------
    like : type, default=None
        A documented class. Its entries and sections are looked up before the shared ones.

    Returns
    -------
    callable
        It returns the same class. A key without a text is a `KeyError`.
    """

    def decorate(cls: type[T]) -> type[T]:
        if cls.__doc__ is not None:  # python -OO drops docstrings
            lines = _expand(cls.__doc__, {} if like is None else _pieces(_EXPANDED[like]))
            _EXPANDED[cls] = lines
            cls.__doc__ = "\n".join(lines)
        return cls

    return decorate


def _margin(lines: list[str]) -> int:
    """Indentation of a docstring: 4 in old versions of Python, 0 from 3.13."""
    return min((len(line) - len(line.lstrip()) for line in lines[1:] if line.strip()), default=0)


def _expand(doc: str, own: dict[str, str]) -> list[str]:
    """Return the lines of a docstring with each placeholder replaced."""
    lines = doc.split("\n")
    margin = _margin(lines)
    found: list[str] = []
    for line in lines:
        match = _PLACEHOLDERS.fullmatch(line)
        if match is None:
            found.append(line)
            continue
        for key in re.findall(r"[\w.]+", match[2]):
            text = own[key] if key in own else TEXTS[key]
            parts = text.split("\n")
            if len(match[1]) > margin:  # below a head: the description alone
                parts = [part.removeprefix("    ") for part in parts[1:]]
            found += [match[1] + part if part else "" for part in parts]
    return found


def _pieces(lines: list[str]) -> dict[str, str]:
    """Return the sections of an expanded docstring by title, and its entries by name."""
    margin = _margin(lines)
    lines = [line[margin:] for line in lines]
    pieces: dict[str, list[str]] = {}
    section, entry = "", ""
    for line, below in zip(lines, [*lines[1:], ""]):
        if below and set(below) == {"-"} and len(below) == len(line):
            section, entry = line, ""
            pieces[section] = []
        elif section and set(line) != {"-"}:
            pieces[section].append(line)
            head = _HEAD.match(line)
            if section in ("Parameters", "Attributes") and head:
                entry = head[1]
                pieces[entry] = []
            if entry:
                pieces[entry].append(line)
    return {name: "\n".join(piece).strip() for name, piece in pieces.items()}
