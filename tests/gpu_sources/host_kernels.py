"""CUDA sources compiled for the host: stand-ins for ``cupy.RawModule`` that record launches or run them.

`Recorder` writes down what is launched. `OneLane` compiles a program into a library in which one thread is the
whole grid. `Warps` compiles it into a program with a thread for every lane; see warps.hpp.
"""

import ctypes
import os
import shutil
import subprocess
from pathlib import Path

import numpy as np

from tests import strict_arrays
from tools.nvrtc_check import argument_type

HERE = Path(__file__).parent
SCALARS = {"int": ctypes.c_int, "long long": ctypes.c_longlong, "double": ctypes.c_double}

# What CUDA has and C++ has not, for one thread that is a warp and a block of its own.
ONE_LANE = """
#include <cmath>
using namespace std;
#define __device__ static
#define __global__
#define __shared__ static
struct Three { int x; };
static Three threadIdx = {0}, blockIdx = {0}, blockDim = {1}, gridDim = {1};
static double __shfl_xor_sync(unsigned, double value, int) { return value; }
static void __syncwarp() {}
static void __syncthreads() {}
static double __dmul_rn(double a, double b) { volatile double c = a * b; return c; }
static double __dadd_rn(double a, double b) { volatile double c = a + b; return c; }
static long long __double2ll_rn(double value) { return llrint(value); }
template <class V> static void atomicAdd(V* place, V value) { *place += value; }
static void atomicMin(long long* place, long long value) { if (value < *place) *place = value; }
"""


class Raw:
    """A stand-in for ``cupy.RawModule``: `raw(code, options)` gives a module whose functions call ``run``."""

    def __call__(self, code, options):
        self.prepare(code)
        return Functions(self, code)

    def prepare(self, code):
        """Called once for every module that is made."""


class Functions:
    """A module: its functions take a grid, a block and arguments as those of CuPy do."""

    def __init__(self, raw, code):
        self.raw, self.code = raw, code

    def get_function(self, name):
        def launch(grid, block, arguments):
            kinds = tuple(map(argument_type, arguments))
            self.raw.run(self.code, name, (grid, block), arguments, kinds)

        return launch


class Recorder(Raw):
    """Keeps, for every program, the types of the arguments of each kernel; nothing is computed."""

    def __init__(self):
        self.launches = {}

    def run(self, code, name, _shape, _arguments, kinds):
        self.launches.setdefault(code, {}).setdefault(name, set()).add(kinds)


class OneLane(Raw):
    """Runs kernels in this process by one thread."""

    def __init__(self, folder, compiler):
        self.folder, self.compiler, self.libraries = Path(folder), compiler, {}

    def prepare(self, code):
        if code not in self.libraries:
            source = self.folder / f"{len(self.libraries)}.cpp"
            source.write_text(ONE_LANE + code.replace("#define WARP 32", "#define WARP 1"))
            target = source.with_suffix(".so")
            flags = ["-O1", "-shared", "-fPIC", "-ffp-contract=off"]
            subprocess.run([self.compiler, *flags, str(source), "-o", str(target)], check=True)
            self.libraries[code] = ctypes.CDLL(str(target))

    def run(self, code, name, _shape, arguments, kinds):
        given = [
            ctypes.c_void_p(values(argument).ctypes.data) if kind.endswith("*") else SCALARS[kind](argument)
            for argument, kind in zip(arguments, kinds, strict=True)
        ]
        self.libraries[code][name](*given)


class Warps(Raw):
    """Runs kernels under ThreadSanitizer, in a process of their own, with a thread for every lane.

    ``dropped`` is the number of one `__syncwarp` or `__syncthreads`, in the order of the program's text, that does
    nothing. ``races`` collects the reports; a kernel that races or never ends leaves its arguments as they were.
    """

    def __init__(self, folder, compiler, sanitizer=True):
        self.folder, self.compiler, self.sanitizer = Path(folder), compiler, sanitizer
        self.programs, self.races, self.dropped = {}, [], -1

    def prepare(self, code):
        if code not in self.programs:
            source = self.folder / f"{len(self.programs)}.cpp"
            start, main = (HERE / "warps.hpp").read_text(), (HERE / "warps_main.hpp").read_text()
            names = kernel_names(code)
            table = "".join(f'    if (name == "{kernel}") run({kernel});\n' for kernel in names)
            source.write_text(start + code + main.replace("/* kernels */", table))
            target = source.with_suffix("")
            flags = ["-std=c++20", "-O1", "-g", "-ffp-contract=off", "-w", "-pthread"]
            flags += ["-fsanitize=thread"] * self.sanitizer
            subprocess.run([self.compiler, *flags, str(source), "-o", str(target)], check=True)
            self.programs[code] = target

    def run(self, code, name, _shape, arguments, kinds):
        # Kernels go through their units in strides of the grid, so a grid of two warps does all the work.
        blocks, threads = 1, 64
        memory = self.folder / "arguments.bin"
        with memory.open("wb") as file:
            for argument in arguments:
                file.write(np.int64(values(argument).nbytes).tobytes())
                file.write(values(argument).tobytes())
        command = [self.programs[code], name, blocks, threads, self.dropped, memory]
        try:
            done = subprocess.run(
                [str(part) for part in command],
                capture_output=True,
                text=True,
                timeout=300,
                check=False,
                env={**os.environ, "TSAN_OPTIONS": "halt_on_error=1"},
            )
        except subprocess.TimeoutExpired:
            self.races.append((name, "the lanes wait for each other"))
            return
        if "WARNING: ThreadSanitizer: data race" in done.stderr:
            self.races.append((name, done.stderr))
            return
        if done.returncode:
            raise RuntimeError(f"{name} ended with {done.returncode}: {done.stderr}")
        with memory.open("rb") as file:
            for argument, kind in zip(arguments, kinds, strict=True):
                size = int(np.frombuffer(file.read(8), np.int64)[0])
                content = file.read(size)
                if kind.endswith("*") and size:
                    there = values(argument)
                    there[...] = np.frombuffer(content, there.dtype).reshape(there.shape)


def values(argument):
    """The memory behind an argument of a launch."""
    return argument._host if isinstance(argument, strict_arrays.ndarray) else np.asarray(argument)


def kernel_names(code):
    """Kernels of a program, as its text says."""
    return [part.split("(")[0].split()[-1] for part in code.split("__global__ void")[1:]]


def compiler():
    """The C++ compiler of this machine, or None."""
    return shutil.which("c++") or shutil.which("g++")
