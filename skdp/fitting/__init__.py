"""Code that families of models share: targets and their scales, step rules, penalties, calibration, progress."""

from skdp._lazy import lazy_exports

__getattr__, __dir__, __all__ = lazy_exports(
    __name__,
    {
        "LabelModel": "skdp.fitting.targets",
        "LinearFit": "skdp.fitting.linear",
        "NumberModel": "skdp.fitting.targets",
        "parameter_shape": "skdp.fitting.task",
    },
)
