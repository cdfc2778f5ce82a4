"""The CUDA sources, which lie beside this file as data of the package."""

from importlib.resources import files

__all__ = ["cuda_source"]


def cuda_source(name: str) -> str:
    """Text of one source file."""
    return files("skdp.kernels.gpu").joinpath(name).read_text(encoding="utf-8")
