"""Which estimators exist, and on what they run."""

from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from skdp._version import __version__ as skdp_version

__all__ = ["all_estimators", "show_versions"]

_ESTIMATORS = {
    "DPAGDClassifier": "skdp.linear_model",
    "DPAMPClassifier": "skdp.linear_model",
    "DPAMPRegressor": "skdp.linear_model",
    "DPAdaSSPRegressor": "skdp.linear_model",
    "DPFrankWolfeClassifier": "skdp.linear_model",
    "DPFrankWolfeRegressor": "skdp.linear_model",
    "DPGDClassifier": "skdp.linear_model",
    "DPIGHTClassifier": "skdp.linear_model",
    "DPIGHTRegressor": "skdp.linear_model",
    "DPLSSGDClassifier": "skdp.linear_model",
    "DPLSSGDRegressor": "skdp.linear_model",
    "DPRRPSGDClassifier": "skdp.linear_model",
    "DPSGDClassifier": "skdp.linear_model",
    "DPSGDRegressor": "skdp.linear_model",
    "DPSLKTClassifier": "skdp.linear_model",
    "DPSLKTRegressor": "skdp.linear_model",
    "DPSRMClassifier": "skdp.linear_model",
    "DPSparseERM": "skdp.linear_model",
    "DPSparseERMClassifier": "skdp.linear_model",
    "DPSparseERMRegressor": "skdp.linear_model",
    "DPTwoStageClassifier": "skdp.linear_model",
    "DPTwoStageRegressor": "skdp.linear_model",
    "IGHTClassifier": "skdp.linear_model",
    "IGHTRegressor": "skdp.linear_model",
    "PublicBinsEncoder": "skdp.preprocessing",
    "STORMClassifier": "skdp.linear_model",
}


def all_estimators() -> list[tuple[str, type[Any]]]:
    """List every estimator of skdp.

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
    return [
        (name, getattr(import_module(room), name)) for name, room in sorted(_ESTIMATORS.items())
    ]


def show_versions() -> None:
    """Print the versions that a bug report needs."""
    import platform
    import sys

    print(f"python: {sys.version.split()[0]} on {platform.platform()}")
    print(f"skdp: {skdp_version}")
    for name in (
        "scikit-learn",
        "numpy",
        "scipy",
        "numba",
        "dp-accounting",
        "cryptography",
        "pooch",
        "tqdm",
        "cupy-cuda12x",
        "matplotlib",
    ):
        try:
            print(f"{name}: {version(name)}")
        except PackageNotFoundError:
            print(f"{name}: not installed")
