"""A whole study to try on one machine: keys, a plan and the tables of three hospitals.

The tables are the bundled RAND Health Insurance Experiment, two of its six sites for each hospital.
"""

import csv
import os
import socket
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

import numpy as np

from skdp._version import __version__
from skdp.multiparty.party.keys import make_keys
from skdp.multiparty.party.plan import PROTOCOL, Feature, Plan, read_plan

HOSPITALS = ("hospital_a", "hospital_b", "hospital_c")
CEILING = (3.0, 1e-6)
"""Of each hospital's ledger: epsilon and delta of all plans together. The example's plan is one of them."""

_TARGET, _GROUP = "any_visit", "person"

# Public bounds: round numbers of the code book and of common sense, not of the records.
_BOUNDS = {
    "xage": (0, 65), "female": (0, 1), "black": (0, 1), "educdec": (0, 25), "income": (0, 20000),
    "num": (1, 14), "mhi": (0, 100), "disea": (0, 60), "physlm": (0, 1), "coins": (0, 100), "idp": (0, 1),
    "hlthg": (0, 1), "hlthf": (0, 1), "hlthp": (0, 1), "tookphys": (0, 1), "child": (0, 1),
    "ghindx": (0, 100), "year": (1, 5),
}  # fmt: skip

_PLAN = """\
# The public plan of a study. All parties hold the same text; its hash is compared before any data are read.
id = "{id}"
skdp = "{version}"
protocol = {protocol}
estimator = "MPCGradientPerturbationClassifier"
servers = 3    # the first 3 parties
threshold = 1  # servers that may look beyond what they should see
max_payload = 16777216  # bytes of one frame

[parameters]
epsilon = 1.0
delta = 1e-6
adjacency = "replace-one"
unit = "group"  # protects a person with all rows
alpha = 1e-3
row_norm = 3.5
max_iter = 40

[deadlines]  # seconds
connect = 120
data = 120
round = 60

[data]
target = "{target}"
classes = [0, 1]
group = "{group}"
features = [
{features}
]
"""

_PARTY = """
[[parties]]
name = "{name}"
address = "{address}"
n_units = {n_units}
certificate = \"\"\"
{certificate}\"\"\"
"""


def make_example(folder: str | os.PathLike[str]) -> tuple[Path, Plan]:
    """Write keys, the plan and three tables.

    Parameters
    ----------
    folder : str or path-like
        Made if missing; must not hold an example already.

    Returns
    -------
    path, plan : Path, Plan
        Of the plan.

    Raises
    ------
    FileExistsError
        If a key is there already.
    """
    where = Path(folder)
    where.mkdir(parents=True, exist_ok=True)
    certificates = [make_keys(where, name)[1].read_text() for name in HOSPITALS]
    sizes = [_write_table(where, place, name) for place, name in enumerate(HOSPITALS)]
    features = [Feature(name, *map(float, bounds)) for name, bounds in _BOUNDS.items()]
    path = where / "plan.toml"
    path.write_text(plan_text("rand-hie", features, sizes, certificates), encoding="utf-8")
    return path, read_plan(path)


def plan_text(plan_id: str, features: Sequence[Feature], sizes: Sequence[int], certificates: Sequence[str]) -> str:
    """The TOML text of the example's plan, with free ports of this machine."""
    lines = [f'  {{ name = "{f.name}", bounds = [{f.low!r}, {f.high!r}] }},' for f in features]
    text = _PLAN.format(
        id=plan_id, version=__version__, protocol=PROTOCOL, target=_TARGET, group=_GROUP, features="\n".join(lines)
    )
    for name, port, size, certificate in zip(HOSPITALS, _free_ports(), sizes, certificates):
        text += _PARTY.format(name=name, address=f"127.0.0.1:{port}", n_units=size, certificate=certificate)
    return text


def _free_ports() -> list[int]:
    with ExitStack() as stack:
        made = [stack.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in HOSPITALS]
        return [one.getsockname()[1] for one in made]


def _write_table(folder: Path, place: int, name: str) -> int:
    """Write one hospital's table; returns its number of persons."""
    from skdp.datasets import load_rand_hie

    hie = load_rand_hie(target=_TARGET)
    here = np.flatnonzero((hie.site - 1) // 2 == place)
    columns = [hie.feature_names.index(feature) for feature in _BOUNDS]
    with (folder / f"{name}.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow([*_BOUNDS, _GROUP, _TARGET])
        for row in here:
            cells = ["" if np.isnan(cell) else repr(float(cell)) for cell in hie.data[row, columns]]
            writer.writerow([*cells, int(hie.person[row]), int(hie.target[row])])
    return len(np.unique(hie.person[here]))
