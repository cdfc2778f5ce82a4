"""The CUDA sources, which lie beside this file as data of the package."""

from importlib.resources import files

OPTIONS = ("--std=c++14",)  # of the compiler, for every program


def cuda_source(name: str) -> str:
    """Text of one source file."""
    return files("skdp.kernels.gpu").joinpath(name).read_text(encoding="utf-8")
