"""Every CUDA program compiles for every target, and its kernels take what the Python code hands over.

Neither a device nor a driver is needed, only the packages of the extra "gpu-sources". .ci/run installs them and
sets SKDP_REQUIRE_NVRTC=1, so that nothing is skipped there.
"""

import importlib.util
import itertools
import os
from importlib.resources import files

import numpy as np
import pytest

from tests import strict_arrays
from tests.gpu_sources import launches
from tests.gpu_sources.host_kernels import Recorder
from tools import nvrtc_check

PROGRAMS = nvrtc_check.programs()


@pytest.fixture(scope="module")
def recorded():
    recorder = Recorder()
    with strict_arrays.installed(recorder) as cupy:
        several = launches.LOSSES[2:], (np.float32, np.float64), launches.STORAGES
        for loss, dtype, storage in itertools.product(*several):
            for grouped, weighted in itertools.product((False, True), repeat=2):
                setting = loss, dtype, storage, cupy, grouped, weighted
                device, _, theta = launches.kernels(*setting)
                for rows in (None, np.arange(3)):
                    assert len(list(launches.sums(device, theta, rows))) == 6
        launches.scan(cupy)
    return recorder.launches


@pytest.fixture(scope="module")
def compiler():
    missing = [
        name
        for name in ("cuda.bindings", "nvidia.cuda_nvrtc")
        if importlib.util.find_spec(name.partition(".")[0]) is None or importlib.util.find_spec(name) is None
    ]
    if missing and os.environ.get("SKDP_REQUIRE_NVRTC") != "1":
        pytest.skip(f'{missing} not installed: pip install "skdp[gpu-sources]"')
    assert not missing, missing
    return nvrtc_check.compile_to_ptx


def test_every_program_is_launched(recorded):
    names = {code: name for name, code in PROGRAMS.items()}
    assert {names[code] for code in recorded} == set(PROGRAMS)


def test_every_source_file_is_compiled():
    sources = [path for path in files("skdp.kernels.gpu").iterdir() if path.name.endswith(".cu")]
    assert len(sources) >= 3
    for path in sources:
        assert any(path.read_text(encoding="utf-8") in code for code in PROGRAMS.values()), path


@pytest.mark.parametrize("target", nvrtc_check.TARGETS)
@pytest.mark.parametrize("name", PROGRAMS)
def test_program_compiles_and_takes_its_arguments(compiler, recorded, name, target):
    launched = recorded[PROGRAMS[name]]
    checks = [nvrtc_check.launch_check(kernel, kinds) for kernel in launched for kinds in launched[kernel]]
    code = PROGRAMS[name] + nvrtc_check.PARAMETERS + "".join(checks)
    assert nvrtc_check.kernels_of(compiler(code, target)) == sorted(launched)


# ------------------------------------------------------------------ what must be refused

KERNEL = 'extern "C" __global__ void f(const float* x, long long n, double a) {}\n'


@pytest.mark.parametrize(
    "wrong",
    [
        ("float*", "long long"),
        ("float*", "long long", "double", "double"),
        ("double*", "long long", "double"),
        ("float*", "int", "double"),
        ("float*", "double", "long long"),
        ("float", "long long", "double"),
    ],
)
def test_other_arguments_do_not_compile(compiler, wrong):
    right = nvrtc_check.launch_check("f", ("float*", "long long", "double"))
    assert nvrtc_check.kernels_of(compiler(KERNEL + nvrtc_check.PARAMETERS + right, "compute_90")) == ["f"]
    check = nvrtc_check.launch_check("f", wrong)
    with pytest.raises(ValueError, match="f is launched with"):
        compiler(KERNEL + nvrtc_check.PARAMETERS + check, "compute_90")


def test_a_misspelt_function_of_the_device_is_found(compiler):
    code = PROGRAMS["rows float64 dense"].replace("__syncwarp", "__syncwrap", 1)
    with pytest.raises(ValueError, match="__syncwrap"):
        compiler(code, "compute_90")


@pytest.mark.parametrize("value", [3, 0.5, True, None, np.zeros((4, 4))[:, ::2]])
def test_arguments_of_no_certain_width_are_refused(value):
    with pytest.raises(TypeError):
        nvrtc_check.argument_type(value)
