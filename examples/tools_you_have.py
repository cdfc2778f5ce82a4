"""
Private fits with mlflow, skops, ONNX, optuna, fairlearn, skrub and dask
========================================================================

Runs every statement of the section "Other libraries" of the user guide's page "Pipelines, evaluation and model
selection". It needs a virtual environment of its own::

    pip install skdp mlflow skops skl2onnx onnxruntime optuna fairlearn skrub dask dask-ml

Run it with ``python examples/tools_you_have.py``. It prints the versions and each statement that it found to be
so, and stops at the first that is not. It was last run with mlflow 3.17.2, skops 0.16.0, skl2onnx 1.20.0,
onnxruntime 1.32.0, optuna 5.0.0, fairlearn 0.15.0, skrub 0.11.0, dask 2026.8.0, dask-ml 2025.1.0 and scikit-learn
1.9.1, where it took a minute on two cores.
"""

import os
import tempfile
import warnings
from importlib.metadata import version
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.base import clone
from sklearn.exceptions import FitFailedWarning
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline

import skdp
from skdp import BudgetAccountant, DPIGHTClassifier, DPIGHTRegressor, DPLogisticRegression, PublicScaler
from skdp.exceptions import PrivacyBudgetExceeded, PrivacyLeakWarning
from skdp.statistics import mean

TOOLS = (
    "mlflow", "skops", "skl2onnx", "onnxruntime", "optuna", "fairlearn", "skrub", "dask", "dask-ml",
    "scikit-learn",
)  # fmt: skip

rng = np.random.default_rng(0)
X = rng.normal(size=(600, 3))
y = (X[:, 0] + 0.5 * rng.normal(size=600) > 0).astype(int)
SEX = (X[:, 1] > 0).astype(int)
NEIGHBOUR = X.copy()
NEIGHBOUR[0] *= -100.0  # one person has other values
PUBLIC = rng.normal(size=(200, 3))  # rows that need no protection
PUBLIC_Y = (PUBLIC[:, 0] > 0).astype(int)
MODEL = DPLogisticRegression(epsilon=2.0, classes=(0, 1))
CATCH = {"catch": (PrivacyBudgetExceeded,)}


def so(statement, holds):
    """Print a statement that holds; stop at one that does not."""
    if not holds:
        raise AssertionError(statement)
    print(f"  {statement}")


def charged(accountant):
    """Number of fits that an accountant is charged for."""
    return sum(row["state"] != "returned" for row in accountant.ledger())


def leaks(fit):
    """Messages of the privacy warnings of a call."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        fit()
    return [str(w.message) for w in caught if issubclass(w.category, PrivacyLeakWarning)]


def error_of(call):
    """The exception of a call, or None."""
    try:
        call()
    except Exception as error:
        return error
    return None


def mlflow_page():
    """The records of autolog, and the report in its place."""
    import mlflow
    from mlflow.data.numpy_dataset import from_numpy

    mlflow.set_tracking_uri("sqlite:///runs.db")
    client = mlflow.MlflowClient()

    def logged(fit):
        with mlflow.start_run() as run:
            fit()
        found = client.get_run(run.info.run_id)
        files = [file.path for file in client.list_artifacts(run.info.run_id)]
        return found.data.metrics, files, found.inputs.dataset_inputs

    mlflow.sklearn.autolog(log_models=False)
    pipeline = make_pipeline(PublicScaler(center=0.0, scale=3.0), clone(MODEL))
    metrics, files, inputs = logged(lambda: pipeline.fit(X, y).score(X, y))
    so("autolog logs a confusion matrix of the training rows", "training_confusion_matrix.png" in files)
    so(
        "autolog logs their ROC curve and log loss",
        {"training_roc_curve.png"} <= set(files) and "training_log_loss" in metrics,
    )
    so("autolog logs metrics of the training rows", "training_accuracy_score" in metrics)
    so("autolog logs later calls of score", any(name.startswith("Pipeline_score") for name in metrics))
    so("autolog logs a digest of the training rows", bool(inputs[0].dataset.digest))
    digests = {from_numpy(table, targets=y).digest for table in (X, NEIGHBOUR)}
    so("the digest changes with one record", len(digests) == 2)
    search = GridSearchCV(MODEL, {"epsilon": [1.0, 2.0]}, cv=2)
    metrics, files, _ = logged(lambda: search.fit(X, y))
    so("autolog logs the table of a search", "cv_results.csv" in files and "best_cv_score" in metrics)
    metrics, files, _ = logged(lambda: MODEL.fit(X, y))
    so("autolog does not see a bare estimator of skdp", not metrics and not files)
    mlflow.sklearn.autolog(disable=True)
    metrics, files, inputs = logged(lambda: pipeline.fit(X, y).score(X, y))
    so("with autolog(disable=True) nothing is logged", not (metrics or files or inputs))

    with mlflow.start_run() as run:
        mlflow.log_params({"epsilon": MODEL.privacy_.epsilon, "delta": MODEL.privacy_.delta})
        mlflow.log_dict(MODEL.privacy_.to_dict(), "privacy.json")
        refused = error_of(lambda: mlflow.sklearn.log_model(MODEL, name="untrusted"))
        so("log_model asks for trusted types", "skops_trusted_types" in str(refused))
        info = mlflow.sklearn.log_model(MODEL, name="model", skops_trusted_types=skdp.trusted_types())
        given = mlflow.sklearn.log_model(
            MODEL, name="given", skops_trusted_types=skdp.trusted_types(), input_example=NEIGHBOUR[:1]
        )
    folder = mlflow.artifacts.download_artifacts(given.model_uri)
    texts = "".join(path.read_text() for path in Path(folder).rglob("*.json"))
    so("input_example= writes the cells of a row", repr(float(NEIGHBOUR[0, 0]))[:12] in texts)
    back = mlflow.sklearn.load_model(info.model_uri)
    so("the model comes back with its report", repr(back.privacy_) == repr(MODEL.privacy_))
    found = mlflow.artifacts.load_dict(f"{run.info.artifact_uri}/privacy.json")
    so("the report comes back from JSON", found["epsilon"] == MODEL.privacy_.epsilon)


def skops_page():
    """A model as a file that runs no code when it is opened."""
    import skops.io

    data = skops.io.dumps(MODEL)
    unknown = skops.io.get_untrusted_types(data=data)
    so("skops refuses types that are not named", "Untrusted" in str(error_of(lambda: skops.io.loads(data))))
    so("trusted_types names them", set(unknown) <= set(skdp.trusted_types()))
    back = skops.io.loads(data, trusted=skdp.trusted_types())
    so("the model predicts the same", np.array_equal(back.predict(PUBLIC), MODEL.predict(PUBLIC)))


def onnx_page():
    """A model where there is no Python."""
    import onnxruntime
    from skl2onnx import to_onnx

    direct = error_of(lambda: to_onnx(MODEL, X[:1]))
    so("skl2onnx does not know the estimators of skdp", type(direct).__name__ == "MissingShapeCalculator")
    table = PUBLIC.astype(np.float32)
    pipeline = make_pipeline(PublicScaler(center=0.0, scale=3.0), clone(MODEL)).fit(X, y)
    for fitted, plain in ((MODEL, MODEL.to_sklearn()), (pipeline, skdp.to_sklearn(pipeline))):
        made = to_onnx(plain, table[:1])
        session = onnxruntime.InferenceSession(made.SerializeToString())
        labels, _ = session.run(None, {session.get_inputs()[0].name: table})
        name = type(fitted).__name__
        so(
            f"to_sklearn() of a {name} converts and predicts the same",
            np.array_equal(labels, fitted.predict(table)),
        )
    regressor = DPIGHTRegressor().fit(X, X[:, 0])
    plain = regressor.to_sklearn()
    refused = error_of(lambda: to_onnx(plain, table[:1]))
    so("skl2onnx does not know the cut around a regressor", "TransformedTargetRegressor" in str(refused))
    session = onnxruntime.InferenceSession(to_onnx(plain.regressor_, table[:1]).SerializeToString())
    (found,) = session.run(None, {session.get_inputs()[0].name: 10 * table})
    low, high = regressor.prediction_bounds_
    so(
        "its regressor_ converts, and cut to prediction_bounds_ it predicts the same",
        np.allclose(found.ravel().clip(low, high), regressor.predict(10 * table), rtol=1e-5),
    )


def optuna_page():
    """Trials, their charges, and their results."""
    import optuna

    optuna.logging.set_verbosity(optuna.logging.ERROR)

    def trial_of(accountant, X_score, y_score):
        def objective(trial):
            epsilon = trial.suggest_float("epsilon", 0.2, 0.5)
            model = DPLogisticRegression(epsilon=epsilon, classes=(0, 1), accountant=accountant)
            return model.fit(X, y).score(X_score, y_score)

        return objective

    accountant = BudgetAccountant(epsilon=1.0, delta=1e-4)
    study = optuna.create_study(direction="maximize")
    study.optimize(trial_of(accountant, PUBLIC, PUBLIC_Y), n_trials=30, **CATCH)
    states = [trial.state.name for trial in study.trials]
    so("trials are charged until the ceiling refuses", states.count("COMPLETE") == charged(accountant) < 30)
    so("a refused trial fails, and the study goes on with catch=", states[-1] == "FAIL")
    study = optuna.create_study()
    refused = error_of(lambda: study.optimize(trial_of(accountant, PUBLIC, PUBLIC_Y), n_trials=30))
    so("without catch= the refusal ends the study", isinstance(refused, PrivacyBudgetExceeded))

    block = BudgetAccountant(epsilon=1.0, delta=1e-4)
    with block:
        study = optuna.create_study()
        study.optimize(trial_of(None, PUBLIC, PUBLIC_Y), n_trials=2, n_jobs=2, **CATCH)
    failed = {trial.state.name for trial in study.trials} == {"FAIL"}
    so("with n_jobs=2 a with block does not reach the threads: fits are refused", failed and not charged(block))
    study = optuna.create_study()
    study.optimize(trial_of(block, PUBLIC, PUBLIC_Y), n_trials=2, n_jobs=2)
    so("with accountant= they are charged", charged(block) == 2)

    study = optuna.create_study(direction="maximize")
    warned = leaks(lambda: study.optimize(trial_of(False, X, y), n_trials=2))
    so("scores of private rows stand in the study, and nothing warns", study.best_value > 0 and not warned)
    payer = BudgetAccountant(epsilon=1.0, delta=1e-4)
    right = MODEL.predict(X) == y
    found = mean(right, bounds=(0, 1), epsilon=0.2, delta=1e-6, accountant=payer)
    so("an accuracy with noise is charged too", charged(payer) == 1 and found.noise_std > 0)


def fairlearn_page():
    """Tools that read private labels and groups without noise."""
    from fairlearn.metrics import MetricFrame, selection_rate
    from fairlearn.postprocessing import ThresholdOptimizer
    from fairlearn.preprocessing import CorrelationRemover
    from fairlearn.reductions import DemographicParity, ExponentiatedGradient

    def rates(table, sex):
        found = MetricFrame(
            metrics=selection_rate,
            y_true=np.zeros(len(table)),
            y_pred=MODEL.predict(table),
            sensitive_features=sex,
        )
        return found.by_group.to_numpy()

    so("MetricFrame changes with one private record", not np.array_equal(rates(X, SEX), rates(NEIGHBOUR, SEX)))

    def thresholds(labels):
        made = ThresholdOptimizer(estimator=MODEL, prefit=True, predict_method="predict_proba")
        return repr(made.fit(X, labels, sensitive_features=SEX).interpolated_thresholder_.interpolation_dict)

    def flipped(row):
        return np.where(np.arange(len(y)) == row, 1 - y, y)

    seen = any(thresholds(flipped(row)) != thresholds(y) for row in range(20))
    so("ThresholdOptimizer changes with one private label", seen)

    def handed_on(sex):
        """Labels and weights that the last fit inside gets."""
        seen = []

        class Seen(LogisticRegression):
            def fit(self, X, y, sample_weight=None):
                seen.append((np.array(y), np.array(sample_weight)))
                return super().fit(X, y, sample_weight)

        ExponentiatedGradient(Seen(), DemographicParity(), max_iter=3).fit(X, y, sensitive_features=sex)
        return seen[-1]

    moved = np.where(np.arange(len(SEX)) == 0, 1 - SEX, SEX)
    others = np.abs(handed_on(SEX)[1] - handed_on(moved)[1])[1:] > 1e-6
    so("one record in ExponentiatedGradient changes the weights of most others", others.mean() > 0.5)
    accountant = BudgetAccountant(epsilon=20.0, delta=1e-3)
    weighted = DPIGHTClassifier(classes=(0, 1), max_weight=3.0, accountant=accountant)
    ExponentiatedGradient(weighted, DemographicParity(), max_iter=3).fit(X, y, sensitive_features=SEX)
    so("ExponentiatedGradient makes several fits, all charged", charged(accountant) > 1)
    accountant = BudgetAccountant(epsilon=20.0, delta=1e-3)
    plain = DPIGHTClassifier(classes=(0, 1), accountant=accountant)
    refused = error_of(lambda: ExponentiatedGradient(plain, DemographicParity()).fit(X, y, sensitive_features=SEX))
    so(
        "without max_weight it is refused, and nothing is charged",
        "max_weight" in str(refused) and not charged(accountant),
    )
    removed = leaks(lambda: make_pipeline(CorrelationRemover(sensitive_feature_ids=[1]), clone(MODEL)).fit(X, y))
    so("CorrelationRemover is named as a step that learnt", any("CorrelationRemover learnt" in m for m in removed))


def skrub_page():
    """Encoders that learn, and previews that fit."""
    import skrub

    table = pd.DataFrame({"age": rng.integers(18, 90, len(X)), "job": rng.choice(["a", "b", "c"], len(X))})
    model = DPLogisticRegression(epsilon=2.0, classes=(0, 1))
    learnt = leaks(lambda: make_pipeline(skrub.TableVectorizer(), model).fit(table, y))
    so("TableVectorizer is named as a step that learnt", any("TableVectorizer learnt" in m for m in learnt))
    learnt = leaks(lambda: skrub.tabular_pipeline(model).fit(table, y))
    so(
        "the steps of tabular_pipeline are named",
        any("TableVectorizer, SquashingScaler learnt" in m for m in learnt),
    )
    encoder = skdp.PublicBinsEncoder(bins={"age": [30, 50, 70]}, categories={"job": ["a", "b", "c"]})
    so("with PublicBinsEncoder nothing is named", not leaks(lambda: make_pipeline(encoder, model).fit(table, y)))

    cell = str(table["age"].iloc[0])
    so("a TableReport shows cells", cell in skrub.TableReport(table[:1], verbose=0).html())

    def after_building(columns, targets):
        payer = BudgetAccountant(epsilon=20.0, delta=1e-3)
        paid = DPLogisticRegression(epsilon=2.0, classes=(0, 1), accountant=payer)
        plan = columns[["age"]].skb.apply(paid, y=targets)
        built = charged(payer)
        plan.skb.make_learner().fit({"X": table, "y": y})
        return built, charged(payer)

    given = after_building(skrub.X(table), skrub.y(y))
    so("a plan that holds data fits a preview when it is built: a fit of its own", given == (1, 2))
    named = after_building(skrub.var("X").skb.mark_as_X(), skrub.var("y").skb.mark_as_y())
    so("a plan of names alone fits once", named == (0, 1))
    with skrub.config_context(eager_data_ops=False):
        so("so does one with eager_data_ops=False", after_building(skrub.X(table), skrub.y(y)) == (0, 1))


def dask_page():
    """Lazy tables, in fits and predictions."""
    import dask.array as da
    import dask_ml.model_selection
    from dask_ml.wrappers import Incremental, ParallelPostFit

    lazy, labels = da.from_array(X, chunks=(100, 3)), da.from_array(y, chunks=100)
    accountant = BudgetAccountant(epsilon=20.0, delta=1e-3)
    paid = DPLogisticRegression(epsilon=2.0, classes=(0, 1), accountant=accountant)
    refused = error_of(lambda: paid.fit(lazy, y))
    so("X in Dask and y in memory are refused", isinstance(refused, TypeError))
    so("nothing was charged for that", accountant.ledger() == [])
    paid.fit(lazy, labels)
    so("Dask arrays are fitted", charged(accountant) == 1)
    same = np.array_equal(paid.predict(lazy).compute(), paid.predict(X))
    so("predictions are lazy arrays", same)
    same = np.array_equal(ParallelPostFit(MODEL).predict(lazy).compute(), MODEL.predict(X))
    so("ParallelPostFit predicts block by block", same)
    same = np.array_equal(lazy.map_blocks(MODEL.predict, drop_axis=1, dtype=int).compute(), MODEL.predict(X))
    so("so does map_blocks", same)
    refused = error_of(lambda: Incremental(DPLogisticRegression(classes=(0, 1))).fit(X, y))
    so("Incremental needs partial_fit, which private estimators do not have", "partial_fit" in str(refused))
    search = dask_ml.model_selection.GridSearchCV(paid, {"epsilon": [0.1, 0.2]}, cv=2)
    search.fit(X, y)
    so("dask-ml's GridSearchCV: 2 candidates, 2 folds and a refit are 5 fits", charged(accountant) == 6)


if __name__ == "__main__":
    os.environ.setdefault("MLFLOW_LOGGING_LEVEL", "ERROR")
    warnings.simplefilter("ignore")
    warnings.simplefilter("error", FitFailedWarning)
    os.chdir(tempfile.mkdtemp())  # mlflow writes its files into the working folder
    print(", ".join(f"{name} {version(name)}" for name in TOOLS))
    MODEL.fit(X, y)
    for page in (mlflow_page, skops_page, onnx_page, optuna_page, fairlearn_page, skrub_page, dask_page):
        print(page.__name__.removesuffix("_page"))
        page()
