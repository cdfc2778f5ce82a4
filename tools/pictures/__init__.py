"""The pictures of README and documentation: ``python -m tools.pictures [NAME ...]`` draws them."""

NAMES = (
    "epsilon",
    "units",
    "choosing",
    "auc_epsilon",
    "accuracy_n",
    "fit",
    "budget",
    "report",
    "parties",
    "layers",
)
