"""The estimators of skdp and the modules that define them.

A new estimator needs a line here, and one in ``__init__.pyi`` of `skdp` and of its package. `all_estimators`, the
contract tests and the check of the API reference read this table.
"""

from importlib import import_module

from skdp._version import __version__

__all__ = ["ESTIMATORS", "OTHERS", "all_estimators", "show_versions", "trusted_types"]

ESTIMATORS = {
    "DPAGDClassifier": "skdp.reproductions.adaptive_descent",
    "DPAMPClassifier": "skdp.linear_model.amp",
    "DPAMPRegressor": "skdp.linear_model.amp",
    "DPAdditiveClassifier": "skdp.linear_model.additive.estimators",
    "DPAdditiveRegressor": "skdp.linear_model.additive.estimators",
    "DPAdaSSPRegressor": "skdp.linear_model.adassp",
    "DPCNNClassifier": "skdp.nn.cnn",
    "DPFrankWolfeClassifier": "skdp.linear_model.frank_wolfe",
    "DPFrankWolfeRegressor": "skdp.linear_model.frank_wolfe",
    "DPGDClassifier": "skdp.linear_model.gradient_descent",
    "DPIGHTClassifier": "skdp.linear_model.ight.estimators",
    "DPIGHTRegressor": "skdp.linear_model.ight.estimators",
    "DPLSSGDClassifier": "skdp.linear_model.sgd.estimators",
    "DPLSSGDRegressor": "skdp.linear_model.sgd.estimators",
    "DPLSTMClassifier": "skdp.nn.text",
    "DPLinearRegression": "skdp.linear_model.auto.estimators",
    "DPLocalGradientPerturbationClassifier": "skdp.reproductions.local_gradient",
    "DPLocalGradientPerturbationRegressor": "skdp.reproductions.local_gradient",
    "DPLocalObjectivePerturbationClassifier": "skdp.reproductions.local_objective",
    "DPLocalObjectivePerturbationRegressor": "skdp.reproductions.local_objective",
    "DPLocalOutputPerturbationClassifier": "skdp.reproductions.local_output",
    "DPLocalOutputPerturbationRegressor": "skdp.reproductions.local_output",
    "DPLogisticRegression": "skdp.linear_model.auto.estimators",
    "DPMLPClassifier": "skdp.nn.mlp",
    "DPMLPRegressor": "skdp.nn.mlp",
    "DPNetworkClassifier": "skdp.nn.networks",
    "DPNetworkRegressor": "skdp.nn.networks",
    "DPQuantileScaler": "skdp.preprocessing.scalers",
    "DPRRPSGDClassifier": "skdp.reproductions.random_round",
    "DPRajkumarAgarwalClassifier": "skdp.reproductions.rajkumar_agarwal",
    "DPRajkumarAgarwalRegressor": "skdp.reproductions.rajkumar_agarwal",
    "DPSGDClassifier": "skdp.linear_model.sgd.estimators",
    "DPSGDRegressor": "skdp.linear_model.sgd.estimators",
    "DPSLKTClassifier": "skdp.linear_model.slkt.estimators",
    "DPSLKTRegressor": "skdp.linear_model.slkt.estimators",
    "DPSRMClassifier": "skdp.linear_model.srm.estimators",
    "DPSparseERM": "skdp.linear_model.sparse_erm.estimators",
    "DPSparseERMClassifier": "skdp.linear_model.sparse_erm.estimators",
    "DPSparseERMRegressor": "skdp.linear_model.sparse_erm.estimators",
    "DPStandardScaler": "skdp.preprocessing.scalers",
    "DPTwoStageClassifier": "skdp.linear_model.two_stage.estimators",
    "DPTwoStageRegressor": "skdp.linear_model.two_stage.estimators",
    "IGHTClassifier": "skdp.linear_model.ight.estimators",
    "IGHTRegressor": "skdp.linear_model.ight.estimators",
    "MPCGradientPerturbationClassifier": "skdp.multiparty.estimators",
    "MPCGradientPerturbationRegressor": "skdp.multiparty.estimators",
    "MPCOutputPerturbationClassifier": "skdp.multiparty.output_estimators",
    "MPCOutputPerturbationRegressor": "skdp.multiparty.output_estimators",
    "MPCPathakClassifier": "skdp.reproductions.pathak",
    "MPCPathakRegressor": "skdp.reproductions.pathak",
    "PublicBinsEncoder": "skdp.preprocessing.public_bins",
    "PublicScaler": "skdp.preprocessing.public_scaler",
    "ScatteringTransform": "skdp.preprocessing.scattering.estimator",
    "STORMClassifier": "skdp.linear_model.srm.estimators",
}

# Estimators whose data are no tables. `all_estimators` leaves them out, and so do the tests of all estimators.
OTHERS = {"DPWord2Vec": "skdp.text.word2vec"}

# Classes that estimators hold as parameters or after a fit, classes that hold estimators, and packages of which
# they may hold any class.
PARTS = {
    "BudgetAccountant": "skdp.privacy",
    "ClassificationEvaluation": "skdp.metrics.two_classes",
    "CategoryBlock": "skdp.preprocessing.blocks",
    "Curves": "skdp.linear_model.additive.curves",
    "DPTunedThresholdClassifier": "skdp.model_selection",
    "DPRandomizedSearch": "skdp.model_selection",
    "EdgeBlock": "skdp.preprocessing.blocks",
    "Expansion": "skdp.privacy",
    "Inputs": "skdp.nn.inputs",
    "NoisyTable": "skdp.metrics.inversion",
    "PrivacyReport": "skdp.privacy",
    "ReleasedScore": "skdp.metrics.released_score",
    "ScoreGrid": "skdp.metrics.two_classes",
    "Part": "skdp.privacy.budget.parts",  # of an accountant's ledger
    "_Stamp": "skdp.privacy.budget.ambient",  # of a fit inside ``with accountant:``
}
PARTS_OF = ("skdp.losses", "skdp.nn")

PACKAGES = (
    "scikit-learn numpy scipy numba dp-accounting cryptography pooch tqdm lazy-loader cupy-cuda12x matplotlib"
)


def all_estimators() -> list[tuple[str, type]]:
    """List every estimator of skdp that is fitted to a table.

    Returns
    -------
    list of tuple (str, type)
        Name and class, sorted by name, as in ``sklearn.utils.discovery.all_estimators``.

    Examples
    --------
    >>> import skdp
    >>> "DPIGHTClassifier" in dict(skdp.all_estimators())
    True
    """
    return [(name, getattr(import_module(module), name)) for name, module in sorted(ESTIMATORS.items())]


def trusted_types() -> list[str]:
    """List the types that a file of skops with estimators of skdp may hold.

    skops refuses a file with classes that its reader does not trust. Its defaults know Python's, NumPy's, SciPy's
    and scikit-learn's. Give the list as ``trusted`` to ``skops.io.load``, or as ``skops_trusted_types`` to
    ``mlflow.sklearn.log_model``. Your own layers, losses and callbacks are not in this list: name them yourself
    after a look at them. A file may name any ledger as an accountant's ledger.

    Returns
    -------
    list of str
        Dotted names, sorted: every estimator, report, accountant, loss and layer of this version of skdp.

    See Also
    --------
    to_sklearn : A model that needs neither this list nor skdp.

    Examples
    --------
    >>> import numpy as np
    >>> import skdp
    >>> import skops.io  # doctest: +SKIP
    >>> model = skdp.PublicScaler(bounds=(18, 90)).fit(np.full((3, 2), 50.0))
    >>> blob = skops.io.dumps(model)  # doctest: +SKIP
    >>> again = skops.io.loads(blob, trusted=skdp.trusted_types())  # doctest: +SKIP
    >>> "skdp.privacy.report.PrivacyReport" in skdp.trusted_types()
    True
    """
    found = {cls for _, cls in all_estimators()}
    found |= {getattr(import_module(home), name) for name, home in {**OTHERS, **PARTS}.items()}
    for package in map(import_module, PARTS_OF):
        offered = (getattr(package, name) for name in package.__all__)
        found |= {thing for thing in offered if isinstance(thing, type)}
    return sorted(f"{cls.__module__}.{cls.__qualname__}" for cls in found)


def show_versions() -> None:
    """Print the versions that a bug report needs."""
    import platform
    import sys
    from importlib.metadata import PackageNotFoundError, version

    print(f"python: {sys.version.split()[0]} on {platform.platform()}")
    print(f"skdp: {__version__}")
    for name in PACKAGES.split():
        try:
            print(f"{name}: {version(name)}")
        except PackageNotFoundError:
            print(f"{name}: not installed")
