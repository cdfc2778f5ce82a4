"""Texts that docstrings of several estimators share, and the decorator that puts them in.

A docstring names a shared text by its key in braces, alone on its line. Several keys may stand side by side.

``{groups}`` in a list of parameters or attributes
    becomes the whole entry. Lines that are indented below it are added to its description.
``{alpha}``, indented below a head such as ``alpha : float, default=0.0``
    becomes the description of that entry.
``{guarantee}`` in running text
    becomes that paragraph.
``{Notes}``
    becomes the section of that name of the argument of `document`.
``[Wang2021]_``
    becomes "Wang (2021) [1]_", and ``([Wang2021]_)`` becomes "(Wang, 2021 [1]_)".
``.. [Wang2021] Chapter 2.`` in the section References
    becomes the numbered reference; the words after the key are added to it.

Entries of the argument of `document` take precedence over the shared texts. Its sections Returns, Raises, Notes
and References, and Parameters of a function, are taken where a docstring has none. The sections Parameters and
Attributes of a class are made from its declarations. A function that takes a budget leaves out the parameters
whose entries are known.
"""

import inspect
import re
import textwrap
from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import Any, TypeVar

T = TypeVar("T", bound=Hashable)

# The texts are found by key. A suffix after a dot tells the texts of one parameter apart.
TEXTS: dict[str, str] = {
    # ---------------------------------------------------------------- paragraphs
    "guarantee": """\
One fit is (epsilon, delta)-differentially private under the given ``adjacency`` and ``unit``. `privacy_`
lists what the claim rests on.""",
    "privacy.full_batch": """\
**Privacy.** The gradient of each record (or group) is clipped to l2 norm ``clip_norm``. Replacing one of n
moves the mean gradient by at most ``2 clip_norm / n`` in l2 norm. Under zero-out and add-remove it is half
of that. The gradients are released with Gaussian noise and use all records. Hence T of them with noise multiplier
z are exactly mu-GDP with ``mu = sqrt(T) / z``, and shares of the budget are shares of mu^2.""",
    "recalibrated": """\
At the end the scores are recalibrated. Clipped gradients bend probabilities, so 2 to 30 % of mu^2, by public
numbers, fit one slope and an intercept for each class on sums that are not clipped. The mean of each class's
probability is then its frequency, up to noise. This is left out where its noise would be worse, with
``delta=0`` and with more than 32 classes; the report's rows "recalibration" tell (user guide).""",
    "recalibrated.several": """\
With more than two classes the scores are recalibrated at the end: 2 to 30 % of mu^2, by public numbers, fit one
slope and an intercept for each class on sums that are not clipped (user guide). Two classes need no such step:
the clip norm hardly cuts their gradients.""",
    "privacy.unprotected": """\
Time and memory depend on the data and are not protected. Parameters count as public: do not choose them by
looking at private scores.""",
    "privacy.targets": """\
**Units of y.** Noisy counts release a centre and a half-width of y first, for 5 % of the budget (of mu^2), and up
to 30 % if the records are few. The fit sees centred targets, and the centre is added to ``intercept_``. Without an
intercept nothing is centred. Numbers for a clip norm, a threshold or bounds stay in the units of y. In the end the
fit is calibrated: the moments of predictions and targets are released, for 10 to 20 % of the budget, and all
coefficients are multiplied by the posterior mean of their slope, ``shrinkage_``. The mean of the residuals comes
last, for 5 to 20 %, and moves the intercept. With very few records, by public numbers, all coefficients are 0, and
the budget goes to the range and the mean. Rows, or a group's rows together, add at most a known amount to these
moments, as in `DPAdaSSPRegressor`. Where all scales of the method are given
as numbers, nothing of this is released, and the method is the published one.""",
    "groups": """\
groups : array-like of shape (n_samples,), default=None
    Who each row belongs to; needed by, and allowed with, ``unit="group"`` only.""",
    "privacy.additive": """\
**Privacy.** Besides the releases of the linear estimator: the wide gradient and the gradient of the products
are mean gradients with Gaussian noise ([Balle2018]_), clipped to a norm G: they move by at most 2 G / n when a
record is replaced, by G / n under zero-out and add-remove. The Gram matrices are of rows scaled down to norm
C, and move by sqrt(2) C^2, or by C^2. These bounds hold whatever the features of a row are, because these are
functions of that row and of public or released numbers alone. A group contributes the mean over its rows.
Earlier releases decide which ones follow, and shares of mu^2 add up to at most 1 on every path ([Smith2022]_).
Choices, shapes, their noise, monotone shapes and explanations are post-processing.""",
    "privacy.net": """\
**Privacy.** The gradient of each record (or the summed gradient of each group) is clipped to l2 norm
``clip_norm``, and the clipped vector is the vector that is added. Removing or replacing one in a Poisson batch
moves the batch's sum by at most ``clip_norm`` under zero-out and add-remove, and twice that under replace-one.
(With `skdp.nn.RecursiveMomentum`, read its bound for ``clip_norm``.) The noise is calibrated to all steps together
by the privacy loss distributions of the sampled Gaussian. The plan is fixed before the data are touched, so a fit
that is interrupted costs as much. Momentum, Adam, smoothing and averages are post-processing. One ledger of a
`BudgetAccountant` holds one adjacency: give nets and linear models the same.""",
    "privacy.net_targets": """\
**Units of y.** A centre and a half-width of y are released first, unless ``y_bounds`` gives them, for at least 5 %
of the budget (of mu^2). At the end the moments of predictions and targets are released for at least 10 %. The line
through them replaces the predictions, so a net that has learnt nothing predicts about the mean. Predictions stay
within the range.""",
    "linear_": """\
linear_ : ndarray of shape (n_features,) or (n_classes, n_features)
    Coefficients of the line's part, in units of the columns, which are cut to ``feature_bounds_``. One row for
    each class if there are three or more.""",
    "glassbox": """\
shapes_ : tuple of Shape
    The contribution of each column to the score, in the order of the columns: knots, values, their known noise,
    and the window. `plot_shapes` draws them.
interactions_ : tuple of Interaction
    The products of two columns that were chosen.
feature_importances_ : ndarray of shape (n_features,)
    Mean absolute contribution of each column, without its products, under a law of the standardized column with
    density exp(-t^2 / 2) + .05 on [-2.5, 2.5], cut at the window; of declared categories their plain mean. It is
    no mean over the records, which would cost budget.
reason_ : str
    Why there are no curves; empty where there are some.
solver_ : str
    "additive", or the method of the linear estimator to which public or released numbers left the fit.
fill_values_ : ndarray of shape (n_features,)
    What a missing value (NaN) counts as: the released centre of its column, or 0.
feature_bounds_ : ndarray of shape (2, n_features)
    Ends at which values are cut, in the fit and in predictions, given or released. Infinite for columns that were
    not seen.""",
    "C_": """\
C_ : float
    ``C``; with ``C="auto"`` the one whose penalty is most like the shrinkage of the first step, or 0 where only a
    constant was released.""",
    "feature_bounds_": """\
feature_bounds_ : ndarray of shape (2, n_features)
    Ends at which values are cut, in the fit and in predictions, given or released: scores are those of
    ``clip(X, *feature_bounds_) @ coef_.T + intercept_``, with missing values replaced by ``fill_values_``.
    Infinite for columns whose coefficients are 0 and for the other solvers.""",
    # ---------------------------------------------------------------- attributes
    "coef_.classifier": """\
coef_ : ndarray of shape (1, n_features) or (n_classes, n_features)
    Coefficients of the features.""",
    "coef_.regressor": """\
coef_ : ndarray of shape (n_features,)
    Coefficients of the features. `predict` is cut to ``prediction_bounds_``, so for rows far outside it differs
    from ``X @ coef_ + intercept_``.""",
    "prediction_bounds_": """\
prediction_bounds_ : tuple of (float, float)
    The bounds (low, high) to which `predict` is cut, public or released. They are ``y_bounds`` where a range is
    given, else twice ``target_scale_`` below and above ``target_center_``. They are infinite with
    ``bounded=False`` and where nothing of y is given or released.""",
    "prediction_bounds_.net": """\
prediction_bounds_ : tuple of (float, float)
    The ends (low, high) between which all predictions lie. They follow from the range of the targets and
    ``line_``, which are public or released.""",
    "intercept_.classifier": """\
intercept_ : ndarray of shape (1,) or (n_classes,)
    Intercept, 0 without ``fit_intercept``.""",
    "intercept_.regressor": """\
intercept_ : float
    Intercept, 0 without ``fit_intercept``.""",
    "support_": """\
support_ : ndarray of int64
    Indices of the features whose coefficients are not all 0, sorted.""",
    "classes_": """\
classes_ : ndarray of shape (n_classes,)
    The declared labels, sorted, also those absent from y.""",
    "n_iter_": """\
n_iter_ : int
    Number of steps.""",
    "learning_rate_": """\
learning_rate_ : float
    The step size given, or the last one that "auto" took.""",
    "clip_norm_": """\
clip_norm_ : float
    The clip norm given, or the one that "auto" became.""",
    "row_norm_": """\
row_norm_ : float
    The bound given, or the one that was released.""",
    "alpha_": """\
alpha_ : float
    The penalty given, or the one that "auto" became.""",
    "y_bounds_": """\
y_bounds_ : tuple of (float, float)
    The range given, or the one that was released.""",
    "target_center_": """\
target_center_ : float
    The centre of y, given or released, which is part of ``intercept_``. It is 0 if none was released.""",
    "target_scale_": """\
target_scale_ : float
    The half-width of y about its centre, given or released: about 98 % of the targets are not further away.""",
    "shrinkage_": """\
shrinkage_ : float
    Factor of all coefficients by the calibration, the last release of the fit: 0 where their predictions cannot
    be told from noise. There is none with a number for ``learning_rate``, with ``max_weight``, without privacy
    and where nothing is released of the targets.""",
    "privacy_": """\
privacy_ : PrivacyReport
    What this fit cost.""",
    "n_features_in_": """\
n_features_in_ : int
    Number of columns of X.""",
    "feature_names_in_": """\
feature_names_in_ : ndarray of shape (n_features_in_,)
    Names of the columns of X, if they are all strings.""",
}

# By key: how the text names a paper, and below it the paper.
_PAPERS = """\
Abadi2016 = Abadi et al. (2016)
    M. Abadi et al., "Deep learning with differential privacy", CCS 2016.
Andreux2020 = Andreux et al. (2020)
    M. Andreux et al., "Kymatio: scattering transforms in Python", JMLR 21(60), 2020.
Balle2018 = Balle and Wang (2018)
    B. Balle and Y.-X. Wang, "Improving the Gaussian mechanism for differential privacy", ICML 2018.
Bassily2014 = Bassily, Smith and Thakurta (2014)
    R. Bassily, A. Smith and A. Thakurta, "Private empirical risk minimization: efficient algorithms and tight
    error bounds", FOCS 2014.
Cai2021 = Cai, Wang and Zhang (2021)
    T. T. Cai, Y. Wang and L. Zhang, "The cost of privacy: optimal rates of convergence for parameter estimation
    with differential privacy", Annals of Statistics 49, 2021.
Chaudhuri2011 = Chaudhuri, Monteleoni and Sarwate (2011)
    K. Chaudhuri, C. Monteleoni and A. D. Sarwate, "Differentially private empirical risk minimization", Journal
    of Machine Learning Research 12, 2011.
Cutkosky2019 = Cutkosky and Orabona (2019)
    A. Cutkosky and F. Orabona, "Momentum-based variance reduction in non-convex SGD", NeurIPS 2019.
Dong2022 = Dong, Roth and Su (2022)
    J. Dong, A. Roth and W. J. Su, "Gaussian differential privacy", JRSS B 84 (2022).
Durfee2019 = Durfee and Rogers (2019)
    D. Durfee and R. Rogers, "Practical differentially private top-k selection with pay-what-you-get
    composition", NeurIPS 2019.
Iyengar2019 = Iyengar et al. (2019)
    R. Iyengar, J. P. Near, D. Song, O. Thakkar, A. Thakurta and L. Wang, "Towards practical differentially
    private convex optimization", IEEE S&P 2019.
Jain2014 = Jain, Tewari and Kar (2014)
    P. Jain, A. Tewari and P. Kar, "On iterative hard thresholding methods for high-dimensional M-estimation",
    NeurIPS 2014.
Kifer2012 = Kifer, Smith and Thakurta (2012)
    D. Kifer, A. Smith and A. Thakurta, "Private convex empirical risk minimization and high-dimensional
    regression", COLT 2012.
Lee2018 = Lee and Kifer (2018)
    J. Lee and D. Kifer, "Concentrated differentially private gradient descent with adaptive per-iteration
    privacy budget", KDD 2018.
Lyu2017 = Lyu, Su and Li (2017)
    M. Lyu, D. Su and N. Li, "Understanding the sparse vector technique for differential privacy", VLDB 2017.
Mallat2012 = Mallat (2012)
    S. Mallat, "Group invariant scattering", Communications on Pure and Applied Mathematics 65, 2012.
Mikolov2013 = Mikolov et al. (2013)
    T. Mikolov, I. Sutskever, K. Chen, G. Corrado and J. Dean, "Distributed representations of words and phrases
    and their compositionality", NIPS 2013.
ODonoghue2015 = O'Donoghue and Candes (2015)
    B. O'Donoghue and E. Candes, "Auto restart for accelerated gradient schemes", Foundations of Computational
    Mathematics 15, 2015.
Raff2023 = Raff, Khanna and Lu (2023)
    E. Raff, A. Khanna and F. Lu, "Scaling up differentially private LASSO regularized logistic regression via
    faster Frank-Wolfe iterations", NeurIPS 2023.
Redberg2023 = Redberg, Koskela and Wang (2023)
    R. Redberg, A. Koskela and Y.-X. Wang, "Improving the privacy and practicality of objective perturbation for
    differentially private linear learners", NeurIPS 2023.
Smith2022 = Smith and Thakurta (2022)
    A. Smith and A. Thakurta, "Fully adaptive composition for Gaussian differential privacy", 2022.
Talwar2015 = Talwar, Thakurta and Zhang (2015)
    K. Talwar, A. Thakurta and L. Zhang, "Nearly optimal private LASSO", NeurIPS 2015.
Tramer2021 = Tramer and Boneh (2021)
    F. Tramer and D. Boneh, "Differentially private learning needs better features (or much more data)", ICLR 2021.
Wang2018 = Wang (2018)
    Y.-X. Wang, "Revisiting differentially private linear regression: optimal and adaptive prediction and
    estimation in unbounded domain", UAI 2018.
Wang2021 = Wang (2021)
    L. Wang, "Towards efficient and effective privacy-preserving machine learning", PhD thesis, UCLA, 2021.
WangB2020 = B. Wang et al. (2020)
    B. Wang, Q. Gu, M. Boedihardjo, L. Wang, F. Barekat and S. J. Osher, "DP-LSSGD: a stochastic optimization
    method to lift the utility in privacy-preserving ERM", MSML 2020.
WangGu2019 = Wang and Gu (2019)
    L. Wang and Q. Gu, "Differentially private iterative gradient hard thresholding for sparse
    learning", IJCAI 2019.
WangYe2017 = Wang, Ye and Xu (2017)
    D. Wang, M. Ye and J. Xu, "Differentially private empirical risk minimization revisited: faster and more
    general", NeurIPS 2017.
Yuan2014 = Yuan, Li and Zhang (2014)
    X. Yuan, P. Li and T. Zhang, "Gradient hard thresholding pursuit", ICML 2014.
ZhangJ2017 = Zhang et al. (2017)
    J. Zhang, K. Zheng, W. Mou and L. Wang, "Efficient private ERM for smooth objectives", IJCAI 2017.
ZhangH2021 = Zhang, Mironov and Hejazinia (2021)
    H. Zhang, I. Mironov and M. Hejazinia, "Wide network learning with differential privacy",
    arXiv:2103.01294, 2021.
"""


def _papers(text: str) -> dict[str, tuple[str, str]]:
    """Names and papers by key; the lines of a paper are indented and make one line."""
    found = {}
    for entry in re.split(r"\n(?=\w)", text.strip()):
        head, _, paper = entry.partition("\n")
        key, _, name = head.partition(" = ")
        found[key] = (name, " ".join(paper.split()))
    return found


REFERENCES = _papers(_PAPERS)

# The sections stand in numpydoc's order.
_SECTIONS = ("Parameters", "Attributes", "Returns", "Raises", "See Also", "Notes", "References", "Examples")
_WIDTH = 110  # columns of a line of a reference
# They match lines of placeholders, heads of entries, citations, and entries of the section References.
_PLACEHOLDERS = re.compile(r"( *)(\{\w[\w.]*\}(?: \{\w[\w.]*\})*)")
_HEAD = re.compile(r"(\w+)(?:, \w+)* :")
_CITED = re.compile(r"(\()?\[([A-Z]\w+\d{4})\]_")
_REFERENCE = re.compile(r"( *)\.\. \[([A-Z]\w+\d{4})\] ?(.*)")
_EXPANDED: dict[Hashable, list[str]] = {}  # documented lines, with citations by key, of each object


def document(like: Hashable = None) -> Callable[[T], T]:
    """Return a decorator of classes and functions that puts the shared texts into the docstring.

    Parameters
    ----------
    like : type or function, default=None
        Its entries and sections are looked up before the shared ones.

    Returns
    -------
    callable
        It returns the same class or function. A key without a text is a `KeyError`.
    """

    def decorate(made: T) -> T:
        if made.__doc__ is not None:  # python -OO drops docstrings
            own = {} if like is None else _pieces(_EXPANDED.get(like, (like.__doc__ or "").split("\n")))
            arguments = {name: _entry(name, one) for name, one in getattr(made, "_arguments", {}).items()}
            lines = _expand(made.__doc__, {**own, **arguments})
            # The parameters of a class, and of a function with a budget, are made from declarations.
            titles = () if arguments or isinstance(made, type) else ("Parameters",)
            lines = _with_sections(lines, own, (*titles, "Returns", "Raises", "Notes", "References"))
            if arguments:
                lines = _with_arguments(lines, list(inspect.signature(made).parameters), {**arguments, **own})  # type: ignore[arg-type]
            lines = _with_attributes(lines, getattr(made, "_attributes", {}))
            lines = _with_parameters(lines, getattr(made, "_parameters", {}))
            _EXPANDED[made] = lines
            made.__doc__ = "\n".join(_numbered(lines))
        return made

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


def _with_parameters(lines: list[str], declared: Mapping[str, Any]) -> list[str]:
    """Return the lines of a docstring with the section Parameters, made from the declarations of the class."""
    section = [line for name, one in declared.items() for line in _entry(name, one).split("\n")]
    return _with_section(lines, "Parameters", section)


def _entry(name: str, one: Any) -> str:
    """The entry of a declared parameter."""
    required = one.default is inspect.Parameter.empty
    default = "" if required else f", default={_literal(one.default)}"
    return f"{name} : {one.kind.words}{default}\n" + textwrap.indent(inspect.cleandoc(one.text), "    ")


def _with_arguments(lines: list[str], names: Iterable[str], known: Mapping[str, str]) -> list[str]:
    """Return the lines of a function's docstring with all parameters: those that it leaves out are known."""
    written, title = _pieces(lines), " " * _margin(lines) + "Parameters"
    if title in lines:
        place, size = lines.index(title), 3 + written["Parameters"].count("\n") + 1
        lines = [*lines[:place], *lines[place + size :]]
    entries = [(written if name in written else known if name in known else TEXTS)[name] for name in names]
    return _with_section(lines, "Parameters", "\n".join(filter(None, entries)).split("\n"))


def _with_attributes(lines: list[str], declared: Mapping[str, Any]) -> list[str]:
    """Return the lines of a docstring with the section Attributes, made from the declarations of the class."""
    kind = "net" if "network_" in declared else "classifier" if "classes_" in declared else "regressor"
    section: list[str] = []
    if f"{' ' * _margin(lines)}Attributes" not in lines:
        for name, one in declared.items():
            entry = f"{name} : {one.words}\n" + textwrap.indent(inspect.cleandoc(one.text), "    ")
            shared = TEXTS.get(f"{name}.{kind}") or TEXTS.get(name)
            if not one.text and shared is None:
                raise KeyError(f"{name} has no description: declare it by fitted(type, text)")
            section += (entry if one.text else str(shared)).split("\n")
    return _with_section(lines, "Attributes", section)


def _with_sections(lines: list[str], own: Mapping[str, str], titles: Iterable[str]) -> list[str]:
    """Return the lines of a docstring with the sections that it shares with another, word for word."""
    for title in titles:
        lines = _with_section(lines, title, own[title].split("\n") if title in own else [])
    return lines


def _with_section(lines: list[str], title: str, section: list[str]) -> list[str]:
    """Return the lines of a docstring with a section in its place, unless there is none or it has one."""
    margin = " " * _margin(lines)
    if not section or margin + title in lines:
        return lines
    later = [margin + name for name in _SECTIONS[_SECTIONS.index(title) + 1 :]]
    place = next((k for k, line in enumerate(lines) if line in later), len(lines))
    made = [title, "-" * len(title), *section, ""]
    if lines[place - 1].strip():
        made.insert(0, "")
    return [*lines[:place], *(margin + line if line else "" for line in made), *lines[place:]]


def _literal(value: object) -> str:
    """A default as it is written in code."""
    return f'"{value}"' if isinstance(value, str) else repr(value).replace("e-0", "e-")


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
                pieces |= {name: [] for name in head[0].removesuffix(" :").split(", ")}
            if entry:
                pieces[entry].append(line)
    return {name: "\n".join(piece).strip() for name, piece in pieces.items()}


def _numbered(lines: list[str]) -> list[str]:
    """Return the lines with numbered references in the order of their section."""
    matches = [_REFERENCE.fullmatch(line) for line in lines]
    number = {key: n for n, key in enumerate((m[2] for m in matches if m), 1)}

    def cite(match: re.Match[str]) -> str:
        opened, key = match.groups()
        name = REFERENCES[key][0]
        if opened:
            name = re.sub(r" \((\d+)\)$", r", \1", f"({name}")
        return f"{name} [{number[key]}]_"

    found: list[str] = []
    for line, match in zip(lines, matches):
        if match is None:
            found.append(_CITED.sub(cite, line))
        else:
            margin, key, more = match.groups()
            text = f"{margin}.. [{number[key]}] {REFERENCES[key][1]} {more}"
            below = margin + "   "
            found += textwrap.wrap(text, _WIDTH, subsequent_indent=below, break_on_hyphens=False)
    return found
