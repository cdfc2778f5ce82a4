"""Classes that may call a fit without a warning, and the effect of other classes on its claim.

A caller is safe only if each fit inside it sees a table in which one record changes at most one record, with
public labels, weights and number of rows. Each class of the first table was read in its library's sources. Every
other class is named; the second table describes the effect of some of them.
"""

from collections.abc import Callable, Iterator
from typing import Any

from skdp.around.kinds import Kinds, is_a, is_private, nested, own
from skdp.around.splitters import about_splitter
from skdp.around.steps import about_steps, about_target, declared
from skdp.registry import ESTIMATORS

Finding = tuple[str, str]  # the line of the report and the warning


def _nothing(caller: object) -> Iterator[str]:
    yield from ()


def _about_columns(caller: Any) -> Iterator[str]:
    if any(callable(part[2]) for part in caller.transformers):
        yield (
            "ColumnTransformer around this fit chooses columns by a function of the records: name the columns; "
            "no epsilon covers that"
        )


def _about_chain(caller: Any) -> Iterator[str]:
    if caller.cv is not None:
        yield (
            f"{type(caller).__name__} around this fit adds predictions of folds as columns: no epsilon covers "
            "that; use cv=None"
        )


def _about_selector(caller: Any) -> Iterator[str]:
    if callable(caller.max_features):
        yield (
            "SelectFromModel around this fit may read the records in max_features: give it as a number; no "
            "epsilon covers that"
        )


_SAFE: Kinds[Callable[[object], Iterator[str]]] = Kinds(
    {
        # One fit on all rows after the steps, which are looked at for themselves.
        ("sklearn.pipeline", "Pipeline"): _nothing,
        ("imblearn.pipeline", "Pipeline"): _nothing,
        # Parts side by side, each on all rows: of all columns, or of columns that are named.
        ("sklearn.pipeline", "FeatureUnion"): _nothing,
        ("sklearn.compose", "ColumnTransformer"): _about_columns,
        # One fit on all rows, with the target's transform of each value alone.
        ("sklearn.compose", "TransformedTargetRegressor"): about_target,
        # One fit on all rows as they are. The threshold is a parameter.
        ("sklearn.model_selection", "FixedThresholdClassifier"): _nothing,
        # One fit on all rows for each column of y: how many there are is a shape.
        ("sklearn.multioutput", "MultiOutputClassifier"): _nothing,
        ("sklearn.multioutput", "MultiOutputRegressor"): _nothing,
        # The same holds, and the features also are the columns of y before this one: they are a record's own.
        ("sklearn.multioutput", "ClassifierChain"): _about_chain,
        ("sklearn.multioutput", "RegressorChain"): _about_chain,
        # One fit on all rows for each member. Targets are handed on as they are; VotingClassifier alters labels.
        ("sklearn.ensemble", "VotingRegressor"): _nothing,
        # One fit on all rows; columns are chosen by the released coefficients.
        ("sklearn.feature_selection", "SelectFromModel"): _about_selector,
        # No fit: the model in it stays as it is.
        ("sklearn.frozen", "FrozenEstimator"): _nothing,
        # One fit on all rows; predictions are made block by block.
        ("dask_ml.wrappers", "ParallelPostFit"): _nothing,
    }
)

_LABELS = "makes one fit for each label, or pair of labels, that it finds, which shows the label set"
_RENUMBERS = "renumbers the labels that it finds, so one record can rename the labels of all others"
_LAST = "fits its last estimator on scores of these records, and makes many fits"
_COLUMNS = "chooses columns by non-private scores of these records, and makes many fits"
_ERRORS = "repeats or weights records by the errors of earlier fits, so one record counts several times"
_WORDS: Kinds[str] = Kinds(
    {
        ("sklearn.ensemble", "BaggingClassifier"): (
            "repeats records (bootstrap) or draws rows, renumbers the labels that it finds, seeds each member "
            "with 31 bits and makes many fits, so one record counts several times and can rename the labels of "
            "others"
        ),
        ("sklearn.ensemble", "BaggingRegressor"): (
            "repeats records (bootstrap) or draws rows, seeds each member with 31 bits and makes many fits, so "
            "one record counts several times"
        ),
        ("sklearn.ensemble", "AdaBoostClassifier"): _ERRORS,
        ("sklearn.ensemble", "AdaBoostRegressor"): _ERRORS,
        ("sklearn.ensemble", "StackingClassifier"): (
            "renumbers the labels that it finds, fits its last estimator on scores of these records and makes "
            "many fits"
        ),
        ("sklearn.ensemble", "StackingRegressor"): _LAST,
        ("sklearn.ensemble", "VotingClassifier"): _RENUMBERS,
        ("sklearn.model_selection", "TunedThresholdClassifierCV"): (
            "chooses its threshold by non-private scores of these records"
        ),
        ("sklearn.calibration", "CalibratedClassifierCV"): (
            "fits its calibrator without noise to scores and labels of these records"
        ),
        ("sklearn.semi_supervised", "SelfTrainingClassifier"): (
            "chooses and labels records by non-private scores of them, and makes many fits"
        ),
        ("sklearn.multiclass", "OneVsRestClassifier"): f"{_LABELS}, and a label without a second one gets none",
        ("sklearn.multiclass", "OneVsOneClassifier"): (
            f"{_LABELS}, and each fit on the rows of two labels shows how many have them"
        ),
        ("sklearn.multiclass", "OutputCodeClassifier"): (
            "draws a code word for each label that it finds, so one record can change the codes of all others"
        ),
        ("sklearn.linear_model", "RANSACRegressor"): (
            "chooses records by their errors, without noise, and makes as many fits as these records ask for"
        ),
        ("sklearn.feature_selection", "RFECV"): _COLUMNS,
        ("sklearn.feature_selection", "RFE"): (
            "makes many fits, one after the other on fewer columns; their number is public, and no report adds "
            "them up"
        ),
        ("sklearn.feature_selection", "SequentialFeatureSelector"): _COLUMNS,
        ("sklearn.impute", "IterativeImputer"): (
            "fits each column on the rows in which it is not missing, stops by unpaid errors, and makes many fits"
        ),
        ("fairlearn.reductions", "ExponentiatedGradient"): (
            "weights or relabels records by their groups and by the errors of earlier fits, without noise"
        ),
        ("fairlearn.reductions", "GridSearch"): (
            "weights or relabels records by their groups and chooses among fits by unpaid errors"
        ),
        ("fairlearn.postprocessing", "ThresholdOptimizer"): (
            "chooses thresholds by labels and groups of these records, without noise"
        ),
        ("doubleml", "DoubleML"): (
            "estimates from residuals of these records, without noise, and makes a fit for each fold"
        ),
        ("mlxtend.classifier", "EnsembleVoteClassifier"): _RENUMBERS,
        **dict.fromkeys(
            [
                ("mlxtend.classifier", "StackingClassifier"),
                ("mlxtend.classifier", "StackingCVClassifier"),
                ("mlxtend.regressor", "StackingRegressor"),
                ("mlxtend.regressor", "StackingCVRegressor"),
            ],
            _LAST,
        ),
        **dict.fromkeys(
            [
                ("mlxtend.feature_selection", "SequentialFeatureSelector"),
                ("mlxtend.feature_selection", "ExhaustiveFeatureSelector"),
                ("feature_engine.selection", "BaseSelector"),
            ],
            _COLUMNS,
        ),
        **dict.fromkeys(
            [
                ("mapie.classification", "SplitConformalClassifier"),
                ("mapie.classification", "CrossConformalClassifier"),
                ("mapie.regression", "SplitConformalRegressor"),
                ("mapie.regression", "CrossConformalRegressor"),
                ("mapie.regression", "JackknifeAfterBootstrapRegressor"),
                ("mapie.regression", "ConformalizedQuantileRegressor"),
            ],
            "computes its intervals from errors of these records, without noise",
        ),
        **dict.fromkeys(
            [("cleanlab.classification", "CleanLearning"), ("cleanlab.regression.learn", "CleanLearning")],
            "leaves records out by scores of them, without noise, and makes many fits",
        ),
    }
)
_SEARCH = (
    "hyper-parameters chosen by non-private scores on the same data: no epsilon covers the choice; "
    "skdp.model_selection.DPRandomizedSearch pays for it"
)


def _searches(caller: object) -> bool:
    """Whether a class is a search of hyper-parameters, by the attributes that all of them have."""
    if isinstance(caller, type) or not hasattr(caller, "cv") or not hasattr(caller, "refit"):
        return False
    return hasattr(caller, "scoring") or hasattr(type(caller), "best_params_")


def _words(caller: object) -> Finding:
    """The warning of a caller that is not known to be safe."""
    name = caller.__name__ if isinstance(caller, type) else type(caller).__name__
    what = _WORDS.nearest(caller)
    if what is None and _searches(caller):
        return _SEARCH, (
            f"{name}, a search, chooses hyper-parameters by scores on these records, which no epsilon covers; the "
            "report says so. skdp.model_selection.DPRandomizedSearch pays for the choice. To see the scores of "
            "a few candidates, split by skdp.model_selection.train_test_split and pay for each by "
            "skdp.metrics.evaluate"
        )
    if what is None:
        what = (
            "is not known to give each record once to each fit, with public labels, weights and number of rows (a "
            "class of your own that does says learns_from_data = False)"
        )
    return _said(f"{name} around this fit {what}: no epsilon covers that")


def _said(line: str) -> Finding:
    return line, f"{line}; the report says so"


def steps_before(pipeline: Any, inner: object) -> list[object]:
    """The steps of a Pipeline before the one with a private estimator, or before the last such one for a copy."""
    steps = [step[1] for step in pipeline.steps]
    for place, step in enumerate(steps):
        if step is inner or any(held is inner for held in nested(step)):
            return steps[:place]
    holders = [place for place, step in enumerate(steps) if is_private(step) or nested(step)]
    return steps[: holders[-1]] if holders else steps[:-1]


def about_call(caller: object, inner: object, sparse: bool = False) -> Iterator[Finding]:
    """The effect of a caller's `fit`, and of all objects between it and a private estimator inside, on the claim.

    Parameters
    ----------
    caller : object
        Whose method is on the stack.
    inner : estimator
        The private estimator that is fitted, cloned or asked for its tags.
    sparse : bool
        Whether the caller's rows are a sparse matrix.
    """
    for each in (caller, *nested(caller)):
        if each is inner or is_private(each):
            continue
        yield from _about_itself(each, inner)
        if is_a(each, "sklearn.pipeline", "Pipeline"):
            yield from map(_said, about_steps(steps_before(each, inner), sparse))


def named(caller: object, inner: object) -> bool:
    """Whether a caller is itself not known to be safe, and estimators inside it were looked at or are known."""
    try:
        seen = bool(nested(caller)) or _WORDS.nearest(caller) is not None
        return seen and any(True for _ in _about_itself(caller, inner))
    except Exception:  # `about_call` fails on it too, and then it is named
        return True


def is_unknown(caller: object) -> bool:
    """Whether nothing is known of a caller of another library: neither its class nor its estimators."""
    kind = caller if isinstance(caller, type) else type(caller)
    if own(kind) or declared(caller) or kind.__module__.partition(".")[0] == "sklearn":
        return False
    return _SAFE.exact(caller) is None and not nested(caller)


def about_subclass(inner: object) -> Iterator[Finding]:
    """The warning of the `fit` of a subclass of a ready estimator, if its class is outside skdp.

    An estimator whose author gives `read` and `solve` is another thing: all of it is the author's.
    """
    ready = any(own(kind) and kind.__name__ in ESTIMATORS for kind in type(inner).__mro__)
    if ready and not declared(inner):
        yield _said(
            f"{type(inner).__name__}.fit, of a class outside skdp, may have learnt from these records before the "
            "private fit: no epsilon covers that; a class that treats each row alone says learns_from_data = "
            "False"
        )


def _about_itself(caller: Any, inner: object) -> Iterator[Finding]:
    kind = caller if isinstance(caller, type) else type(caller)
    if own(kind) or declared(caller):
        return
    known = _SAFE.exact(caller)
    if known is None:
        yield _words(caller)
        if _WORDS.nearest(caller) is None and _searches(caller):
            yield from _about_splits(caller.cv, getattr(caller, "estimator", None), inner)
    else:
        yield from map(_said, known(caller))


def _about_splits(cv: object, estimator: object, inner: object) -> Iterator[Finding]:
    from sklearn.base import is_classifier

    try:
        classifies = is_classifier(inner if estimator is None else estimator)
    except Exception:  # tags of another library's class may fail
        classifies = True
    unit, adjacency = getattr(inner, "unit", "record"), getattr(inner, "adjacency", "replace-one")
    lines = about_splitter(cv, classifies=classifies, unit=str(unit), adjacency=str(adjacency))
    yield from map(_said, lines)


def about_function(name: str, method: object, cv: object, estimator: object, inner: object) -> Iterator[Finding]:
    """The effect of one of scikit-learn's functions of cross-validation on the claim.

    ``method`` is the argument of `cross_val_predict`: all but "predict" renumber the labels first.
    """
    if name == "permutation_test_score":
        yield _said(
            "permutation_test_score around this fit gives the labels of records to others, so one record changes "
            "several: no epsilon covers that"
        )
    if name == "cross_val_predict" and method != "predict":
        yield _said(
            f"cross_val_predict(method={method!r}) around this fit renumbers the labels that it finds, so one "
            "record can rename the labels of all others: no epsilon covers that; use method='predict'"
        )
    yield from _about_splits(cv, estimator, inner)
    if estimator is not None and not is_private(estimator):
        yield from about_call(estimator, inner)
