"""The pictures of README and documentation: both themes, nothing of the machine, and words that are up to date."""

import csv
import re
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

import skdp
from skdp.privacy import PrivacySession, PrivateRecords
from tools.pictures import NAMES

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "docs" / "_static" / "pictures"
THEMES = ("light", "dark")
# A fit of 20,000 records compiles for some seconds, and its noise may differ between machines.
REDRAWN = [name for name in NAMES if name != "report"]


def texts(svg):
    """The words of a picture: matplotlib draws them as paths, and writes each as a comment before them."""
    return re.findall(r"<!-- (.*?) -->", svg, re.DOTALL)


def stored(name, theme):
    return (FOLDER / f"{name}-{theme}.svg").read_text(encoding="utf-8")


def test_the_folder_holds_each_picture_in_both_themes_and_nothing_else():
    files = {f"{name}-{theme}.svg" for name in NAMES for theme in THEMES}
    assert {path.name for path in FOLDER.iterdir()} == files


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("theme", THEMES)
def test_a_picture_is_small_valid_and_says_nothing_of_the_machine(name, theme):
    svg = stored(name, theme)
    root = ElementTree.fromstring(svg)
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    assert len(svg) < 130_000
    kinds = {element.tag.rpartition("}")[2] for element in root.iter()}
    assert not kinds & {"script", "image", "foreignObject", "date", "creator"}
    links = {value for element in root.iter() for key, value in element.items() if key.endswith("href")}
    assert all(link.startswith("#") for link in links)
    assert not re.search(r"/(?:home|work|tmp|Users)/|\b20\d\d-\d\d-\d\dT", svg)
    # Both themes have the page's background.
    assert not re.search(r"fill: #(?:fff(?:fff)?|121212)\b", svg)


@pytest.mark.parametrize("name", NAMES)
def test_both_themes_say_the_same(name):
    assert texts(stored(name, "light")) == texts(stored(name, "dark")) != []


@pytest.mark.parametrize("name", REDRAWN)
def test_a_picture_says_what_its_script_and_its_table_say_now(name):
    pytest.importorskip("matplotlib")
    from tools.pictures.draw import svg
    from tools.pictures.style import LIGHT

    assert texts(svg(name, LIGHT)) == texts(stored(name, "light"))


def test_drawing_twice_gives_the_same_bytes():
    pytest.importorskip("matplotlib")
    from tools.pictures.draw import svg
    from tools.pictures.style import DARK

    assert svg("fit", DARK) == svg("fit", DARK)


def test_the_chart_names_public_classes_only():
    words = {word for text in texts(stored("choosing", "light")) for word in re.findall(r"[A-Z]\w+\*?", text)}
    names = {word for word in words if word.startswith(("DP", "MPC", "Priva"))}
    public = {name for name, _ in skdp.all_estimators()} | set(skdp.__all__)
    known = {name for name in public for name in (name, re.sub("Classifier$|Regressor$", "*", name))}
    known |= {"MPC*"} if any(name.startswith("MPC") for name in public) else set()
    assert len(names) >= 10
    assert names <= known


@pytest.mark.parametrize("name", ["auc_epsilon", "accuracy_n"])
def test_measured_pictures_have_a_table_with_its_repeats(name):
    with (ROOT / "docs" / "tables" / "automatic" / f"{name}.csv").open(encoding="utf-8") as file:
        header, *rows = csv.reader(file)
    assert header[-1] == "repeats"
    assert {row[-1] for row in rows} == {"20"}


def test_pages_name_pictures_that_exist_and_say_in_words_what_they_show():
    for page in (ROOT / "docs").rglob("*.rst"):
        for name, options in re.findall(
            r"\.\. picture:: (\S+)\n((?:   +:.*\n)*)", page.read_text(encoding="utf-8")
        ):
            assert name in NAMES, (page.name, name)
            assert re.search(r":alt: \S", options), (page.name, name)


def test_the_annotated_report_has_the_words_that_a_report_prints_now():
    records = PrivateRecords(np.ones((20, 2)))
    with PrivacySession(records, epsilon=1.0, delta=1e-6) as session:
        session.gaussian(records.norm_count(1.0), session.plan_gaussian(1, purpose="count"))
        lines = str(session.report()).splitlines()[1:]
    drawn = texts(stored("report", "light"))
    head = lines.index("  releases") + 1
    labels = {line.split()[0] for line in lines[:head]}
    assert labels <= {text.split()[0] for text in drawn}
    columns = re.split(r"\s{2,}", lines[head].strip())
    assert any(set(columns) <= set(re.split(r"\s{2,}", text.strip())) for text in drawn)
