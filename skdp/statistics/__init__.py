"""Released statistics of columns: means, quantiles, counts and histograms, each with its privacy report.

They serve to find public numbers for other fits: bounds of targets, clip norms, bins.
"""

from skdp._lazy import lazy_exports

__getattr__, __dir__, __all__ = lazy_exports(
    __name__,
    {
        "Released": "skdp.statistics.released",
        "count": "skdp.statistics.functions",
        "histogram": "skdp.statistics.functions",
        "mean": "skdp.statistics.functions",
        "quantile": "skdp.statistics.functions",
    },
)
