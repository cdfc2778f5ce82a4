"""The order of every fit (`PrivateFit`), the checks of its parameters, and how its tables are read."""

from skdp._lazy import lazy_exports

__getattr__, __dir__, __all__ = lazy_exports(
    __name__,
    {
        "BudgetSplit": "skdp.base.plan",
        "Decision": "skdp.base.plan",
        "ExactFit": "skdp.base.exact",
        "FitPlan": "skdp.base.plan",
        "PrivateFit": "skdp.base.fit",
        "Problem": "skdp.base.problem",
        "Solution": "skdp.base.problem",
        "Step": "skdp.base.plan",
        "changed": "skdp.base.declare",
        "check_choice": "skdp.base.kinds",
        "check_flag": "skdp.base.kinds",
        "check_number": "skdp.base.kinds",
        "choice": "skdp.base.kinds",
        "clipped_weights": "skdp.base.tables",
        "document": "skdp._docs",
        "encode_groups": "skdp.base.tables",
        "fitted": "skdp.base.declare",
        "fixed": "skdp.base.declare",
        "flag": "skdp.base.kinds",
        "integer": "skdp.base.kinds",
        "parameter": "skdp.base.declare",
        "real": "skdp.base.kinds",
        "solve_inside": "skdp.base.fit",
        "unpaid": "skdp.base.fit",
        "validate_table": "skdp.base.tables",
    },
)
