"""Released statistics of columns: means, variances, quantiles, counts and histograms, and tables of all of these.

They describe private data, and serve to find public numbers for other fits: bounds of targets, clip norms, bins.
"""

from skdp._lazy import lazy_exports

__getattr__, __dir__, __all__ = lazy_exports(
    __name__,
    {
        "Description": "skdp.statistics.tables",
        "Released": "skdp.statistics.released",
        "ReleasedTable": "skdp.statistics.tables",
        "count": "skdp.statistics.functions",
        "crosstab": "skdp.statistics.description",
        "describe": "skdp.statistics.description",
        "histogram": "skdp.statistics.functions",
        "mean": "skdp.statistics.functions",
        "quantile": "skdp.statistics.functions",
        "std": "skdp.statistics.spread",
        "var": "skdp.statistics.spread",
    },
)
