"""What a user installs: the wheel, built here and installed outside the checkout, has the data."""

import importlib.util
import os
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

CHECK = textwrap.dedent(
    """
    import sys
    from importlib.resources import files
    import skdp
    from skdp.datasets import load_rand_hie, rand_hie_bins
    from skdp.preprocessing import PublicBinsEncoder
    assert skdp.__file__.startswith(sys.argv[1]), skdp.__file__
    assert files("skdp").joinpath("py.typed").is_file()
    from skdp.kernels.gpu.source import cuda_source
    assert len(sys.argv) > 4
    assert all("__global__" in cuda_source(name) for name in sys.argv[2:])
    hie = load_rand_hie()
    assert hie.data.shape == (20190, 30)
    assert "RAND Health Insurance Experiment" in hie.DESCR
    assert PublicBinsEncoder(**rand_hie_bins()).fit_transform(hie.data).shape == (20190, 263)
    """
)


def copy_tracked(target):
    """A copy of what git holds or would add, so that a file git ignores cannot help."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"],
        cwd=ROOT,
        capture_output=True,
        check=False,
    )
    if listed.returncode:
        pytest.skip("this is no git checkout, so what git ignores is not known")
    for name in listed.stdout.decode().split("\0"):
        if name and (ROOT / name).is_file() and not name.startswith("tests/"):
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, target / name)
    return target


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    for module in ("hatchling", "pip"):
        if importlib.util.find_spec(module) is None:
            pytest.skip(f"{module} is not installed here, so no wheel can be built")
    source = copy_tracked(tmp_path_factory.mktemp("source") / "skdp")
    target = tmp_path_factory.mktemp("wheel")
    command = ["wheel", "--no-deps", "--no-build-isolation", "--quiet", "-w", str(target)]
    pip(*command, str(source))
    (built,) = target.glob("skdp-*.whl")
    return built


def pip(*arguments):
    done = subprocess.run(
        [sys.executable, "-m", "pip", "--disable-pip-version-check", *arguments],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.slow
def test_installed_wheel_has_its_data(wheel, tmp_path):
    target = tmp_path / "site"
    pip("install", "--no-deps", "--no-compile", "--quiet", "--target", str(target), str(wheel))
    environment = {**os.environ, "PYTHONPATH": str(target)}
    sources = [path.name for path in (ROOT / "skdp/kernels/gpu").glob("*.cu")]
    done = subprocess.run(
        [sys.executable, "-c", CHECK, str(target), *sources],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
