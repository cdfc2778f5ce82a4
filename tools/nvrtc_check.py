"""Compile the CUDA sources of skdp by NVRTC, without a GPU or a driver, and check how they are called.

    pip install ".[gpu-sources]"
    python tools/nvrtc_check.py        # each program, for each target: seconds and kernels

Source: NVIDIA, "NVRTC: CUDA runtime compilation", CUDA 12.9.
"""

import re
import time
from functools import cache

import numpy as np

from skdp.kernels.gpu.gradient import gradient_program
from skdp.kernels.gpu.source import OPTIONS, cuda_source

# Compute capabilities: Pascal, Volta, Ampere, Ada, Hopper, Blackwell.
TARGETS = ("compute_60", "compute_70", "compute_80", "compute_89", "compute_90", "compute_100")

# How C++ spells the types of launch arguments.
SPELLING = {
    "float32": "float",
    "float64": "double",
    "int32": "int",
    "int64": "long long",
    "uint64": "unsigned long long",
    "bool": "bool",
}

# The compiler compares the parameters of a kernel, but for `const`, with the arguments of a launch.
PARAMETERS = """
template <class V> struct bare_ { typedef V type; };
template <class V> struct bare_<const V*> { typedef V* type; };
template <class...> struct list_ {};
template <class A, class B> struct same_ { static const bool value = false; };
template <class A> struct same_<A, A> { static const bool value = true; };
template <class... P> __device__ list_<typename bare_<P>::type...> parameters_(void (*)(P...));
"""


def programs() -> dict[str, str]:
    """Text of every program that the package compiles on a device, by a name that says its storage."""
    rows = {
        f"rows {data} {storage}": gradient_program(data, index, storage.startswith("csr"))
        for data in ("float32", "float64")
        for storage, index in (("dense", "int32"), ("csr int32", "int32"), ("csr int64", "int64"))
    }
    return {**rows, "sparse vector": cuda_source("sparse_vector.cu")}


def launch_check(kernel: str, arguments: tuple[str, ...]) -> str:
    """C++ that does not compile unless the kernel takes arguments of these types."""
    given = ", ".join(arguments)
    return (
        f"static_assert(same_<decltype(parameters_({kernel})), list_<{given}>>::value, "
        f'"{kernel} is launched with ({given})");\n'
    )


def argument_type(value: object) -> str:
    """The C++ type that a kernel reads: arrays by their dtype, NumPy numbers by theirs.

    Raises
    ------
    TypeError
        For an array that is not C-contiguous, and for a Python number: its width is not said.
    """
    if hasattr(value, "flags") and hasattr(value, "shape") and not isinstance(value, np.generic):
        if not value.flags.c_contiguous:
            raise TypeError("a kernel reads arrays in C order: call ascontiguousarray first")
        return f"{SPELLING[value.dtype.name]}*"
    if not isinstance(value, np.generic):
        raise TypeError(f"wrap {type(value).__name__} {value!r} in a NumPy number of known width")
    return SPELLING[value.dtype.name]


@cache
def nvrtc():
    """NVIDIA's binding of the compiler."""
    from cuda.bindings import nvrtc

    return nvrtc


def _call(function, *arguments):
    """The results of a function of NVRTC; RuntimeError with its name unless it succeeded."""
    status, *results = function(*arguments)
    if int(status):
        raise RuntimeError(f"{function.__name__}: {status.name}")
    return results[0] if len(results) == 1 else results


def compile_to_ptx(code: str, target: str) -> str:
    """PTX of a program.

    Raises
    ------
    ValueError
        If it does not compile; holds the compiler's messages.
    """
    library = nvrtc()
    program = _call(library.nvrtcCreateProgram, code.encode(), b"program.cu", 0, [], [])
    try:
        options = [f"--gpu-architecture={target}".encode(), *(name.encode() for name in OPTIONS)]
        status = library.nvrtcCompileProgram(program, len(options), options)[0]
        log = b" " * _call(library.nvrtcGetProgramLogSize, program)
        _call(library.nvrtcGetProgramLog, program, log)
        if int(status):
            raise ValueError(f"{target}: {status.name}\n{log.decode()}")
        ptx = b" " * _call(library.nvrtcGetPTXSize, program)
        _call(library.nvrtcGetPTX, program, ptx)
        return ptx.decode()
    finally:
        _call(library.nvrtcDestroyProgram, program)


def kernels_of(ptx: str) -> list[str]:
    """Names of the kernels in compiled code, sorted."""
    return sorted(re.findall(r"\.entry (\w+)\(", ptx))


def main() -> None:
    """Print what compiles and how long it takes."""
    print("NVRTC", ".".join(map(str, _call(nvrtc().nvrtcVersion))))
    for name, code in programs().items():
        for target in TARGETS:
            start = time.perf_counter()
            kernels = kernels_of(compile_to_ptx(code, target))
            print(f"{name:26s} {target:12s} {time.perf_counter() - start:5.2f} s ", *kernels)


if __name__ == "__main__":
    main()
