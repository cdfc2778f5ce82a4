"""The order of every fit (`PrivateFit`), the checks of its parameters, and how its tables are read."""

from skdp._lazy import lazy_exports

__getattr__, __dir__, __all__ = lazy_exports(
    __name__,
    {
        "Decision": "skdp.base.plan",
        "ExactFit": "skdp.base.exact",
        "FitPlan": "skdp.base.plan",
        "PrivateFit": "skdp.base.fit",
        "Problem": "skdp.base.problem",
        "Solution": "skdp.base.problem",
        "Step": "skdp.base.plan",
        "check_choice": "skdp.base.kinds",
        "check_flag": "skdp.base.kinds",
        "check_number": "skdp.base.kinds",
        "clipped_weights": "skdp.base.tables",
        "encode_groups": "skdp.base.tables",
        "solve_inside": "skdp.base.fit",
        "unpaid": "skdp.base.fit",
        "validate_table": "skdp.base.tables",
    },
)
