"""Which steps before a fit are safe, and under which parameters.

A step is safe only if its output for a record depends on this record and on public numbers, and so do the number
of its columns, their type and their container. Then one changed record changes one row of the table that the fit
gets. A step that is not on the list is taken to learn from the records.
"""

import numbers
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from skdp.around.kinds import Kinds, is_a, is_private, own

# A test of the parameters: None if the step is safe, else its effect and the repair.
Verdict = Callable[[Any], str | None]


def _always(step: object) -> None:
    """The step reads the row and its parameters only."""


def _listed_categories(step: Any) -> str | None:
    if isinstance(step.categories, str):
        return "learns its categories from the records: give categories="
    if step.min_frequency is not None or step.max_categories is not None:
        return "counts categories: leave out min_frequency and max_categories"
    if step.handle_unknown == "warn" or (
        getattr(step, "drop", None) is not None and step.handle_unknown in ("ignore", "infrequent_if_exist")
    ):
        return (
            "warns where it meets an unknown category, so the warning tells of a record: "
            "use handle_unknown='ignore' and no drop"
        )
    return None


def _constant(step: Any) -> str | None:
    if step.strategy != "constant":
        return f"learns the {step.strategy} of each column: use strategy='constant'"
    if step.add_indicator:
        return (
            "has a column for each feature with a missing value, so one cell decides the number of features: "
            "use add_indicator=False"
        )
    if not step.keep_empty_features:
        return (
            "drops columns without a value, so one cell decides the number of features: "
            "use keep_empty_features=True"
        )
    return None


def _number(name: str, what: str) -> Verdict:
    def check(step: object) -> str | None:
        value = getattr(step, name)
        if isinstance(value, numbers.Real):
            return None
        return f"{what}: give {name} as a number in place of {value!r}"

    return check


def _own_words(step: object) -> str | None:
    for name in ("preprocessor", "tokenizer", "analyzer"):
        function = getattr(step, name)
        if callable(function) and not declared(function):
            return (
                f"may learn from the records in its {name}: write a function of one text alone and give it the "
                "attribute learns_from_data = False"
            )
    return None


def _given_words(step: Any) -> str | None:
    if step.vocabulary is None:
        return "learns its vocabulary from the records: give vocabulary="
    return _own_words(step) or (_no_idf(step) if getattr(step, "use_idf", False) else None)


def _no_idf(step: Any) -> str | None:
    return "weights words by how many records have them: use use_idf=False" if step.use_idf else None


def _function(step: Any) -> str | None:
    for name in ("func", "inverse_func"):
        func = getattr(step, name)
        if func is not None and not declared(func):
            return (
                f"may learn from the records in its {name}: write a function of a row alone and give it the "
                f"attribute learns_from_data = False"
            )
    if step.check_inverse and step.func is not None and step.inverse_func is not None:
        return "warns where the inverse does not fit the records: use check_inverse=False"
    return None


def _frozen(step: Any) -> str | None:
    inner = step.estimator
    if declared(inner) or own(type(inner)):
        return None
    if is_a(inner, "sklearn.preprocessing", "FunctionTransformer"):
        return _function(inner)
    # A fitted transformer of scikit-learn treats each row alone; what it learnt before is the user's to know.
    if type(inner).__module__.partition(".")[0] == "sklearn":
        return None
    return (
        f"holds a {type(inner).__name__}, which may look at several rows: a class that treats each row alone says "
        "learns_from_data = False"
    )


def _private_selector(step: Any) -> str | None:
    if not is_private(step.estimator) and not is_a(step.estimator, "sklearn.frozen", "FrozenEstimator"):
        return "chooses columns by an estimator that is not private"
    if callable(step.max_features):
        return "may read the records in max_features: give it as a number"
    return None


# (module, class): (test of its parameters, how to write it, for the guide). Each class was read in scikit-learn's
# sources: `fit` stores the shape, the names and the parameters, and `transform` treats each row alone.
SAFE_STEPS: Kinds[tuple[Verdict, str]] = Kinds(
    {
        # Stateless: their `fit` checks parameters.
        ("sklearn.preprocessing", "Normalizer"): (_always, "``Normalizer``"),
        ("sklearn.preprocessing", "Binarizer"): (_always, "``Binarizer``"),
        ("sklearn.feature_extraction.text", "HashingVectorizer"): (_own_words, "``HashingVectorizer``"),
        ("sklearn.feature_extraction", "FeatureHasher"): (_always, "``FeatureHasher``"),
        ("sklearn.kernel_approximation", "AdditiveChi2Sampler"): (_always, "``AdditiveChi2Sampler``"),
        # Shape only: products of columns; random directions drawn for a public number of columns.
        ("sklearn.preprocessing", "PolynomialFeatures"): (_always, "``PolynomialFeatures``"),
        ("sklearn.kernel_approximation", "PolynomialCountSketch"): (_always, "``PolynomialCountSketch``"),
        ("sklearn.kernel_approximation", "SkewedChi2Sampler"): (_always, "``SkewedChi2Sampler``"),
        ("sklearn.kernel_approximation", "RBFSampler"): (
            _number("gamma", "takes its scale from the variance of the records"),
            "``RBFSampler(gamma=0.5)``: any number, not ``'scale'``",
        ),
        ("sklearn.random_projection", "GaussianRandomProjection"): (
            _number("n_components", "shows the number of rows by its number of columns"),
            "``GaussianRandomProjection(n_components=20)``: any number, not ``'auto'``",
        ),
        ("sklearn.random_projection", "SparseRandomProjection"): (
            _number("n_components", "shows the number of rows by its number of columns"),
            "``SparseRandomProjection(n_components=20)``: any number, not ``'auto'``",
        ),
        # Steps that were fitted before, on public rows.
        ("sklearn.frozen", "FrozenEstimator"): (
            _frozen,
            "``FrozenEstimator`` around a step that was fitted on public rows",
        ),
        # Public lists in place of lists that the records show.
        ("sklearn.preprocessing", "OneHotEncoder"): (_listed_categories, "``OneHotEncoder(categories=...)``"),
        ("sklearn.preprocessing", "OrdinalEncoder"): (_listed_categories, "``OrdinalEncoder(categories=...)``"),
        ("sklearn.feature_extraction.text", "CountVectorizer"): (
            _given_words,
            "``CountVectorizer(vocabulary=...)``",
        ),
        ("sklearn.feature_extraction.text", "TfidfVectorizer"): (
            _given_words,
            "``TfidfVectorizer(vocabulary=..., use_idf=False)``",
        ),
        ("sklearn.feature_extraction.text", "TfidfTransformer"): (_no_idf, "``TfidfTransformer(use_idf=False)``"),
        ("sklearn.impute", "SimpleImputer"): (
            _constant,
            "``SimpleImputer(strategy='constant', keep_empty_features=True)``",
        ),
        # A function says itself that it treats each row alone; a clone keeps the function and its attribute.
        ("sklearn.preprocessing", "FunctionTransformer"): (
            _function,
            "``FunctionTransformer(func)`` where ``func.learns_from_data = False``; with an ``inverse_func`` "
            "also ``check_inverse=False``",
        ),
        # The columns follow from released coefficients.
        ("sklearn.feature_selection", "SelectFromModel"): (
            _private_selector,
            "``SelectFromModel`` around a private estimator",
        ),
    }
)

# Steps that may make sparse matrices of dense rows, and the parameter for it.
_SPARSE: Kinds[Callable[[Any], bool]] = Kinds(
    {
        ("sklearn.preprocessing", "OneHotEncoder"): lambda step: step.sparse_output,
        ("sklearn.preprocessing", "KBinsDiscretizer"): lambda step: step.encode == "onehot",
        ("sklearn.preprocessing", "FunctionTransformer"): lambda step: step.func is not None,
        ("sklearn.frozen", "FrozenEstimator"): lambda step: _sparse(step.estimator),
        ("sklearn.feature_extraction.text", "HashingVectorizer"): lambda step: True,
        ("sklearn.feature_extraction.text", "CountVectorizer"): lambda step: True,
        ("sklearn.feature_extraction.text", "TfidfTransformer"): lambda step: True,
        ("sklearn.feature_extraction", "FeatureHasher"): lambda step: True,
        ("sklearn.feature_extraction", "DictVectorizer"): lambda step: step.sparse,
        ("sklearn.ensemble", "RandomTreesEmbedding"): lambda step: step.sparse_output,
    }
)


def declared(thing: object) -> bool:
    """Whether a class, or a function, declares by ``learns_from_data = False`` that it takes nothing from records.

    A declaration of a class of skdp holds for no subclass elsewhere, which may override anything, and a
    declaration by ``__getattr__`` in the place of another object holds for neither of the two.
    """
    kind = thing if isinstance(thing, type) else type(thing)
    said = (getattr(thing, "__dict__", None) or {}).get("learns_from_data")
    for parent in kind.__mro__:
        if said is None and "learns_from_data" in vars(parent):
            if own(parent) and not own(kind):
                return False
            said = vars(parent)["learns_from_data"]
    try:
        return (said.fget(thing) if isinstance(said, property) and said.fget else said) is False
    except Exception:  # a property that fails says nothing
        return False


def _is_nothing(step: object) -> bool:
    return step is None or (isinstance(step, str) and step in ("passthrough", "drop"))


def _parts(step: Any) -> list[object] | None:
    """The steps that a step is made of; None for any other step."""
    kind = type(step)
    if kind.__module__.partition(".")[0] not in ("sklearn", "imblearn"):
        return None  # a subclass may override anything
    if is_a(step, "sklearn.compose", "ColumnTransformer"):
        return [part[1] for part in step.transformers] + [step.remainder]
    if is_a(step, "sklearn.pipeline", "FeatureUnion"):
        return [part[1] for part in step.transformer_list]
    if is_a(step, "sklearn.pipeline", "Pipeline"):
        return [part[1] for part in step.steps]
    return None


def _sparse(step: object) -> bool:
    """Whether a step may make a sparse matrix of dense rows."""
    parts = None if _is_nothing(step) else _parts(step)
    if parts is not None:
        return any(_sparse(part) for part in parts)
    makes = _SPARSE.nearest(step)
    if makes is not None:
        return bool(makes(step))
    if own(type(step)):
        return type(step).__name__ == "PublicBinsEncoder"
    # scikit-learn's others keep dense rows dense; of other classes nothing is known.
    return not _is_nothing(step) and type(step).__module__.partition(".")[0] != "sklearn"


def _about_columns(step: Any, sparse: bool) -> Iterator[str]:
    """Private facts that a ColumnTransformer itself shows; ``sparse`` says that it gets sparse rows."""
    if any(callable(part[2]) for part in step.transformers):
        yield "chooses columns by a function of the records: name the columns"
    if step.sparse_threshold != 0 and (sparse or _sparse(step)):
        yield (
            "is dense or sparse by how many entries of the records are 0, and so is the choice of a solver: "
            "use sparse_threshold=0, or dense parts"
        )


def _about_step(step: object, sparse: bool, learnt: dict[str, None]) -> Iterator[str]:
    """Sentences on a step that is not safe; names of those that learn are added to ``learnt``."""
    if _is_nothing(step):
        return
    name = type(step).__name__
    parts = _parts(step)
    if parts is not None:
        if is_a(step, "sklearn.compose", "ColumnTransformer"):
            yield from (f"{name} before this fit {what}" for what in _about_columns(step, sparse))
        in_turn = is_a(step, "sklearn.pipeline", "Pipeline")
        for part in parts:
            yield from _about_step(part, sparse, learnt)
            sparse = sparse or (in_turn and _sparse(part))
        return
    if callable(getattr(type(step), "fit_resample", None)):
        yield (
            f"{name} before this fit copies records, leaves some out or makes new ones of several, by their "
            "labels: one record counts several times or moves others"
        )
        return
    known = SAFE_STEPS.exact(step)
    if known is not None:
        what = known[0](step)
        if what is not None and what.startswith(("learns", "counts", "weights")):
            learnt[name] = None
        elif what is not None:
            yield f"{name} before this fit {what}"
        return
    paid = getattr(getattr(step, "privacy_", None), "guarantee", None) == "proven"
    unfitted = is_private(step) and not hasattr(step, "privacy_")
    if declared(step) or (own(type(step)) and (paid or unfitted)):
        return
    if type(step).__module__.partition(".")[0] in ("sklearn", "skdp"):
        learnt[name] = None
    else:
        yield (
            f"{name} before this fit may have learnt from these records: a class that treats each row alone says "
            "learns_from_data = False"
        )


def about_steps(steps: Iterable[object], sparse: bool = False) -> Iterator[str]:
    """Lines for the report on the steps before a fit that are not known to be safe.

    ``sparse`` says whether the first of them gets a sparse matrix.
    """
    learnt: dict[str, None] = {}
    others: list[str] = []
    for step in steps:
        others += _about_step(step, sparse, learnt)
        sparse = sparse or _sparse(step)
    if learnt:
        yield (
            f"{', '.join(learnt)} learnt from these records before this fit: no epsilon covers that; use a scaler "
            "of skdp.preprocessing, or what the guide lists under 'Steps that learn'"
        )
    yield from (f"{line}; no epsilon covers that" for line in dict.fromkeys(others))


def about_target(wrapper: Any) -> Iterator[str]:
    """Lines on the change of the target by a TransformedTargetRegressor before a fit."""
    if wrapper.transformer is not None:
        yield from about_steps([wrapper.transformer])
    elif wrapper.func is not None and not declared(wrapper.func):
        yield (
            "TransformedTargetRegressor may learn from the targets in its func: write a function of a target "
            "alone and give it the attribute learns_from_data = False; no epsilon covers that"
        )
    if wrapper.check_inverse:
        yield (
            "TransformedTargetRegressor warns where the inverse does not fit the targets: use "
            "check_inverse=False; no epsilon covers that"
        )


def paid_steps(steps: Iterable[object]) -> Iterator[str]:
    """Names of the private transformers among fitted steps: their own reports have their cost."""
    for step in steps:
        if _is_nothing(step):
            continue
        yield from paid_steps(_fitted_parts(step))
        for paid in (step, getattr(step, "estimator_", None)):
            if getattr(getattr(paid, "privacy_", None), "guarantee", None) == "proven":
                yield type(step).__name__


def _fitted_parts(step: object) -> list[object]:
    if is_a(step, "sklearn.compose", "ColumnTransformer"):
        return [part[1] for part in getattr(step, "transformers_", ())]
    return _parts(step) or []
