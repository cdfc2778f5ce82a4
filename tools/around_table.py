"""Fit a private estimator inside wrappers, steps and splitters of other libraries, and write down skdp's warnings.

    python tools/around_table.py --install FOLDER   # makes a virtual environment there, installs all, runs in it
    python tools/around_table.py                    # runs where everything is installed

The table is docs/tables/around.csv. A row is "named" if a `PrivacyLeakWarning` came before the first charge to the
ledger, and "silent" without one. The script ends with status 1 where a row is not as its own list expects.
"""

import argparse
import csv
import importlib.metadata
import os
import subprocess
import sys
import venv
import warnings
from pathlib import Path

ROOT = Path(__file__).parents[1]
TABLE = ROOT / "docs" / "tables" / "around.csv"
PACKAGES = [
    *("scikit-learn", "imbalanced-learn", "optuna", "optuna-integration", "fairlearn", "cleanlab"),
    *("mlxtend", "mapie", "doubleml", "feature-engine", "skrub", "dask-ml", "category_encoders"),
    "pandas",
]
NAMED, SILENT = "named", "silent"


def install(folder):
    """A virtual environment with the libraries and this checkout; the script runs again there."""
    venv.create(folder, with_pip=True)
    python = Path(folder) / "bin" / "python"
    subprocess.run([python, "-m", "pip", "install", "-q", str(ROOT), *PACKAGES], check=True)
    return subprocess.run([python, __file__], check=False).returncode


def cases():
    """(library, what it is, how it is used, what to expect, why): each `use(data)` fits once."""
    import numpy as np
    import pandas as pd
    import sklearn.experimental.enable_iterative_imputer  # noqa: F401
    from sklearn import (
        calibration,
        compose,
        ensemble,
        feature_extraction,
        feature_selection,
        frozen,
        impute,
        kernel_approximation,
        linear_model,
        model_selection,
        multiclass,
        multioutput,
        pipeline,
        preprocessing,
        random_projection,
        semi_supervised,
    )

    from skdp import DPIGHTClassifier, DPIGHTRegressor

    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 4))
    y = (X[:, 0] > 0).astype(int)
    t = X[:, 1]
    three = np.digitize(X[:, 0], [-0.5, 0.5])
    frame = pd.DataFrame(X, columns=list("abcd"))
    two = np.stack([y, 1 - y], axis=1)
    few = {"epsilon": 1.0, "delta": 1e-6, "clip_norm": 1.0, "learning_rate": 0.5, "max_iter": 1}

    def classifier(labels=(0, 1)):
        return DPIGHTClassifier(classes=labels, **few)

    def regressor():
        return DPIGHTRegressor(**few)

    def before(step, data=X):
        return lambda: pipeline.make_pipeline(step, classifier()).fit(data, y)

    part = np.where(np.arange(300) < 150, y, -1)
    kfold = model_selection.KFold(2)
    sk = "scikit-learn"
    yield sk, "Pipeline", before(preprocessing.Normalizer()), SILENT, "a row alone"
    yield (
        sk,
        "FixedThresholdClassifier",
        lambda: model_selection.FixedThresholdClassifier(classifier(), threshold=0.3).fit(X, y),
        SILENT,
        "one fit on all rows",
    )
    yield (
        sk,
        "MultiOutputClassifier",
        lambda: multioutput.MultiOutputClassifier(classifier()).fit(X, two),
        SILENT,
        "one fit for each column of y",
    )
    yield (
        sk,
        "ClassifierChain",
        lambda: multioutput.ClassifierChain(classifier()).fit(X, two),
        SILENT,
        "one fit for each column of y",
    )
    yield (
        sk,
        "VotingRegressor",
        lambda: ensemble.VotingRegressor([("a", regressor())]).fit(X, t),
        SILENT,
        "one fit for each member",
    )
    yield (
        sk,
        "VotingClassifier",
        lambda: ensemble.VotingClassifier([("a", classifier())]).fit(X, y),
        NAMED,
        "renumbers labels",
    )
    yield (
        sk,
        "BaggingClassifier",
        lambda: ensemble.BaggingClassifier(classifier(), 2).fit(X, y),
        NAMED,
        "copies records",
    )
    yield (
        sk,
        "AdaBoostRegressor",
        lambda: ensemble.AdaBoostRegressor(regressor(), n_estimators=2).fit(X, t),
        NAMED,
        "copies records by errors",
    )
    yield (
        sk,
        "StackingClassifier",
        lambda: ensemble.StackingClassifier([("a", classifier())], cv=2).fit(X, y),
        NAMED,
        "learns from scores",
    )
    yield (
        sk,
        "OneVsRestClassifier",
        lambda: multiclass.OneVsRestClassifier(classifier()).fit(X, three),
        NAMED,
        "shows the label set",
    )
    yield (
        sk,
        "OneVsRestClassifier, two workers",
        lambda: multiclass.OneVsRestClassifier(classifier(), n_jobs=2).fit(X, three),
        NAMED,
        "shows the label set",
    )
    yield (
        sk,
        "OneVsOneClassifier",
        lambda: multiclass.OneVsOneClassifier(classifier()).fit(X, three),
        NAMED,
        "shows class counts",
    )
    yield (
        sk,
        "OutputCodeClassifier",
        lambda: multiclass.OutputCodeClassifier(classifier((-1, 1))).fit(X, three),
        NAMED,
        "codes of the labels found",
    )
    yield (
        sk,
        "CalibratedClassifierCV",
        lambda: calibration.CalibratedClassifierCV(classifier(), cv=2).fit(X, y),
        NAMED,
        "a calibrator without noise",
    )
    yield (
        sk,
        "TunedThresholdClassifierCV",
        lambda: model_selection.TunedThresholdClassifierCV(classifier(), cv=2).fit(X, y),
        NAMED,
        "a threshold without noise",
    )
    yield (
        sk,
        "SelfTrainingClassifier",
        lambda: semi_supervised.SelfTrainingClassifier(classifier(), max_iter=1).fit(X, part),
        NAMED,
        "chooses records",
    )
    yield (
        sk,
        "RANSACRegressor",
        lambda: linear_model.RANSACRegressor(regressor(), min_samples=150, max_trials=1).fit(X, t),
        NAMED,
        "chooses records",
    )
    yield (
        sk,
        "RFE",
        lambda: feature_selection.RFE(classifier(), n_features_to_select=3).fit(X, y),
        NAMED,
        "many fits",
    )
    yield (
        sk,
        "RFECV",
        lambda: feature_selection.RFECV(classifier(), cv=2, min_features_to_select=3).fit(X, y),
        NAMED,
        "unpaid scores",
    )
    yield (
        sk,
        "SequentialFeatureSelector",
        lambda: feature_selection.SequentialFeatureSelector(classifier(), n_features_to_select=1, cv=2).fit(X, y),
        NAMED,
        "unpaid scores",
    )
    yield (
        sk,
        "IterativeImputer",
        lambda: impute.IterativeImputer(regressor(), max_iter=1).fit(np.where(X > 2, np.nan, X)),
        NAMED,
        "fits on rows that are not missing",
    )
    yield (
        sk,
        "GridSearchCV, KFold",
        lambda: model_selection.GridSearchCV(classifier(), {"alpha": [0.0]}, cv=kfold).fit(X, y),
        NAMED,
        "unpaid scores",
    )
    yield (
        sk,
        "cross_val_score, KFold",
        lambda: model_selection.cross_val_score(classifier(), X, y, cv=kfold),
        SILENT,
        "positions only; its scores are not private, as its page says",
    )
    yield (
        sk,
        "cross_val_predict, predict_proba, KFold",
        lambda: model_selection.cross_val_predict(classifier(), X, y, cv=kfold, method="predict_proba"),
        NAMED,
        "renumbers labels",
    )
    yield (
        sk,
        "permutation_test_score, KFold",
        lambda: model_selection.permutation_test_score(classifier(), X, y, cv=kfold, n_permutations=1),
        NAMED,
        "gives labels to other records",
    )
    yield (
        sk,
        "CalibratedClassifierCV, FrozenEstimator",
        lambda: calibration.CalibratedClassifierCV(frozen.FrozenEstimator(classifier().fit(X, y)), cv=2).fit(X, y),
        SILENT,
        "no private fit: what the calibrator learns is its user's to know",
    )
    yield (
        sk,
        "cross_val_score, cv=2",
        lambda: model_selection.cross_val_score(classifier(), X, y, cv=2),
        NAMED,
        "labels move others between folds",
    )
    yield (
        sk,
        "TransformedTargetRegressor",
        lambda: compose.TransformedTargetRegressor(regressor(), func=np.arcsinh, inverse_func=np.sinh).fit(X, t),
        NAMED,
        "a function that declares nothing",
    )
    yield sk, "StandardScaler", before(preprocessing.StandardScaler()), NAMED, "learns"
    yield (
        sk,
        "SimpleImputer(constant)",
        before(impute.SimpleImputer(strategy="constant")),
        NAMED,
        "drops empty columns",
    )
    yield (
        sk,
        "SimpleImputer(constant, keep_empty_features)",
        before(impute.SimpleImputer(strategy="constant", keep_empty_features=True)),
        SILENT,
        "a row alone",
    )
    yield (
        sk,
        "RBFSampler(gamma='scale')",
        before(kernel_approximation.RBFSampler(gamma="scale")),
        NAMED,
        "reads a variance",
    )
    yield (
        sk,
        "RBFSampler(gamma=1)",
        before(kernel_approximation.RBFSampler(gamma=1)),
        SILENT,
        "directions of the shape",
    )
    yield (
        sk,
        "GaussianRandomProjection(3)",
        before(random_projection.GaussianRandomProjection(3)),
        SILENT,
        "directions of the shape",
    )
    yield (
        sk,
        "FunctionTransformer(np.tanh)",
        before(preprocessing.FunctionTransformer(np.tanh)),
        NAMED,
        "a function that declares nothing",
    )
    yield (
        sk,
        "FeatureHasher",
        before(feature_extraction.FeatureHasher(4, input_type="string"), [["a"]] * 300),
        SILENT,
        "a row alone",
    )

    from imblearn import ensemble as balanced
    from imblearn import over_sampling, under_sampling
    from imblearn import pipeline as imb

    yield (
        "imbalanced-learn",
        "RandomOverSampler",
        lambda: imb.make_pipeline(over_sampling.RandomOverSampler(), classifier()).fit(X, y),
        NAMED,
        "copies records",
    )
    yield (
        "imbalanced-learn",
        "SMOTE",
        lambda: imb.make_pipeline(over_sampling.SMOTE(), classifier()).fit(X, y),
        NAMED,
        "makes records of several",
    )
    yield (
        "imbalanced-learn",
        "RandomUnderSampler",
        lambda: imb.make_pipeline(under_sampling.RandomUnderSampler(), classifier()).fit(X, y),
        NAMED,
        "leaves records out by class counts",
    )
    yield (
        "imbalanced-learn",
        "BalancedBaggingClassifier",
        lambda: balanced.BalancedBaggingClassifier(classifier(), 2).fit(X, y),
        NAMED,
        "copies records by labels",
    )
    yield (
        "imbalanced-learn",
        "Pipeline",
        lambda: imb.make_pipeline(preprocessing.Normalizer(), classifier()).fit(X, y),
        SILENT,
        "a row alone",
    )

    yield (
        "optuna",
        "OptunaSearchCV",
        lambda: optuna_search(classifier(), kfold).fit(X, y),
        NAMED,
        ("unpaid scores"),
    )

    from fairlearn import postprocessing, reductions

    groups = (X[:, 2] > 0).astype(int)
    yield (
        "fairlearn",
        "ExponentiatedGradient",
        lambda: reductions.ExponentiatedGradient(
            classifier(), reductions.DemographicParity(), max_iter=2, sample_weight_name="sample_weight"
        ).fit(X, y, sensitive_features=groups),
        NAMED,
        "weights records by earlier fits",
    )
    yield (
        "fairlearn",
        "ThresholdOptimizer",
        lambda: postprocessing.ThresholdOptimizer(estimator=classifier(), predict_method="predict_proba").fit(
            X, y, sensitive_features=groups
        ),
        NAMED,
        "thresholds without noise",
    )

    from cleanlab.classification import CleanLearning

    yield (
        "cleanlab",
        "CleanLearning",
        lambda: CleanLearning(classifier(), cv_n_folds=2).fit(X, y),
        NAMED,
        "leaves records out by scores",
    )

    from mlxtend.classifier import EnsembleVoteClassifier, StackingCVClassifier
    from mlxtend.evaluate import bootstrap_point632_score
    from mlxtend.feature_selection import ExhaustiveFeatureSelector

    yield (
        "mlxtend",
        "EnsembleVoteClassifier",
        lambda: EnsembleVoteClassifier([classifier()]).fit(X, y),
        NAMED,
        "renumbers labels",
    )
    yield (
        "mlxtend",
        "StackingCVClassifier",
        lambda: StackingCVClassifier([classifier()], linear_model.LogisticRegression(), cv=2).fit(X, y),
        NAMED,
        "learns from scores",
    )
    yield (
        "mlxtend",
        "ExhaustiveFeatureSelector",
        lambda: ExhaustiveFeatureSelector(
            classifier(), min_features=4, max_features=4, cv=2, print_progress=False
        ).fit(X, y),
        NAMED,
        "unpaid scores",
    )

    yield (
        "mlxtend",
        "bootstrap_point632_score",
        lambda: bootstrap_point632_score(classifier(), X, y, n_splits=1),
        NAMED,
        "copies records",
    )

    from mapie.classification import SplitConformalClassifier
    from mapie.regression import CrossConformalRegressor

    yield (
        "mapie",
        "CrossConformalRegressor",
        lambda: CrossConformalRegressor(regressor(), cv=2).fit_conformalize(X, t),
        NAMED,
        "intervals of unpaid errors",
    )
    yield (
        "mapie",
        "SplitConformalClassifier",
        lambda: SplitConformalClassifier(classifier(), prefit=False).fit(X, y),
        NAMED,
        "not known",
    )

    import doubleml

    yield (
        "doubleml",
        "DoubleMLPLR",
        lambda: doubleml.DoubleMLPLR(
            doubleml.DoubleMLData.from_arrays(X, t, X[:, 3]), regressor(), regressor(), n_folds=2
        ).fit(),
        NAMED,
        "an estimate without noise",
    )

    from feature_engine import imputation, selection

    yield (
        "feature-engine",
        "RecursiveFeatureElimination",
        lambda: selection.RecursiveFeatureElimination(classifier(), cv=2).fit(frame, y),
        NAMED,
        "unpaid scores",
    )
    yield ("feature-engine", "MeanMedianImputer", before(imputation.MeanMedianImputer(), frame), NAMED, "learns")

    import category_encoders

    yield (
        "category_encoders",
        "TargetEncoder",
        before(category_encoders.TargetEncoder(cols=["a"]), frame.round().astype(str)),
        NAMED,
        "learns from labels",
    )

    import skrub

    def learner(fit):
        table = skrub.var("X", frame).skb.mark_as_X()
        labels = skrub.var("y", y).skb.mark_as_y()
        return fit(table.skb.apply(classifier(), y=labels))  # skrub fits here already, for a preview

    yield (
        "skrub",
        "SkrubLearner",
        lambda: learner(lambda op: op.skb.make_learner().fit({"X": frame, "y": y})),
        NAMED,
        "runs steps that skdp does not see",
    )
    yield (
        "skrub",
        "data op, eval",
        lambda: learner(lambda op: op.skb.eval()),
        NAMED,
        ("runs steps that skdp does not see"),
    )
    yield "skrub", "TableVectorizer", before(skrub.TableVectorizer(), frame), NAMED, "learns"

    from dask_ml import model_selection as dask_search
    from dask_ml import wrappers

    yield (
        "dask-ml",
        "ParallelPostFit",
        lambda: wrappers.ParallelPostFit(classifier()).fit(X, y),
        SILENT,
        "one fit on all rows",
    )
    yield (
        "dask-ml",
        "GridSearchCV",
        lambda: dask_search.GridSearchCV(classifier(), {"alpha": [0.0]}, cv=kfold).fit(X, y),
        NAMED,
        "unpaid scores",
    )


def optuna_search(model, cv):
    import optuna
    from optuna.integration import OptunaSearchCV

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    alpha = {"alpha": optuna.distributions.FloatDistribution(0.0, 0.1)}
    return OptunaSearchCV(model, alpha, cv=cv, n_trials=1)


def look(use):
    """Whether leaks were named before the first charge, what was said, and an exception that ended the fit."""
    from skdp import BudgetAccountant
    from skdp.exceptions import PrivacyLeakWarning

    charged = []
    with BudgetAccountant(1e6, 1e-2, allow_seeded=True) as accountant, warnings.catch_warnings():
        said = []

        def keep(message, category, *_, **__):
            if issubclass(category, PrivacyLeakWarning) and "is a seed" not in str(message):
                said.append(str(message))
                charged.append(len(accountant.ledger()))

        warnings.simplefilter("always")
        warnings.showwarning = keep
        error = ""
        try:
            use()
        except Exception as problem:
            error = f"{type(problem).__name__}: {str(problem)[:60]}"
    named = bool(said) and charged[0] == 0
    late = bool(said) and not named
    return (NAMED if named else "late" if late else SILENT), said, error


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--install", type=Path)
    given = parser.parse_args()
    if given.install:
        return install(given.install)
    os.environ.setdefault("MPLBACKEND", "Agg")
    wrong = []
    with TABLE.open("w", newline="", encoding="utf-8") as file:
        rows = csv.writer(file, lineterminator="\n")
        rows.writerow(["library", "around or before the fit", "skdp", "why", "warnings"])
        for library, name, use, expected, why in cases():
            found, said, error = look(use)
            print(f"{library:18} {name:44} {found:7} {len(said)} {error}", flush=True)
            for text in said:
                print(f"    {text[:150]}")
            if found != expected:
                wrong.append(name)
            version = importlib.metadata.version(library)
            rows.writerow([f"{library} {version}", name, found, why, len(said)])
    print(f"not as expected: {wrong}" if wrong else "all as expected")
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
