"""Neural networks on NumPy and CuPy: layers, architectures, losses, and the estimators that train them.

A layer computes each record's gradient. `skdp.privacy` clips what is added. So the privacy of a fit does not rest
on the mathematics of a layer.
"""

from skdp._lazy import lazy_exports
from skdp.registry import estimators_of

__getattr__, __dir__, __all__ = lazy_exports(
    __name__,
    {
        **estimators_of(__name__),
        "ARCHITECTURES": "skdp.nn.architectures",
        "architecture": "skdp.nn.architectures",
        "Adam": "skdp.fitting.optimizers",
        "AdaFEST": "skdp.fitting.selection",
        "AvgPool2D": "skdp.nn.layers.avg_pool",
        "BatchNorm": "skdp.nn.layers.batch_norm",
        "Conv2D": "skdp.nn.layers.conv2d",
        "CrossEntropy": "skdp.nn.losses",
        "Dense": "skdp.nn.layers.dense",
        "Embedding": "skdp.nn.layers.embedding",
        "Flatten": "skdp.nn.layers.flatten",
        "GroupNorm": "skdp.nn.layers.group_norm",
        "LSTM": "skdp.nn.layers.lstm",
        "Layer": "skdp.nn.layers.layer",
        "LayerNorm": "skdp.nn.layers.layer_norm",
        "MaskedMeanPool": "skdp.nn.layers.masked_mean_pool",
        "MaxPool2D": "skdp.nn.layers.max_pool",
        "Microbatch": "skdp.nn.clipping",
        "Network": "skdp.nn.network",
        "Projections": "skdp.nn.clipping",
        "ReLU": "skdp.nn.layers.relu",
        "RecursiveMomentum": "skdp.fitting.recursive",
        "Rescaling": "skdp.nn.layers.rescaling",
        "RandomSparsification": "skdp.fitting.sparsification",
        "Reshape": "skdp.nn.layers.reshape",
        "SGD": "skdp.fitting.optimizers",
        "ScaledTanh": "skdp.nn.layers.scaled_tanh",
        "Sequential": "skdp.nn.network",
        "SparseSelection": "skdp.fitting.selection",
        "SquaredError": "skdp.nn.losses",
        "Tanh": "skdp.nn.layers.tanh",
        "rows_times": "skdp.nn.products",
    },
)
