"""Model cards: what they say, that they say nothing else, and that a forged one is found."""

import html
import inspect
import json
import math
import re
import warnings
from importlib import import_module
from pathlib import Path
from pkgutil import walk_packages

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import skdp
from skdp import nn
from skdp.base import PrivateFit
from skdp.cli import main
from skdp.exceptions import UnsupportedAccounting
from skdp.privacy import BoundedStatistic, PrivacyReport, PrivacySession, verify_card
from skdp.privacy.accounting import recheck_epsilon, tradeoff
from skdp.privacy.accounting.text import ACCOUNTANTS
from skdp.privacy.report import decode
from skdp.privacy.report.card import json_text
from skdp.privacy.report.curves import Curves
from skdp.privacy.report.purposes import MEANINGS, meaning_of
from skdp.privacy.report.text import SEEDED, noise_name, plain

SUFFIXES = ("html", "md")


@pytest.fixture(scope="module")
def report():
    """A report of a session with releases of three mechanisms; two of one purpose differ in noise."""
    session = PrivacySession(epsilon=1.0, delta=1e-6, estimator="DPStandardScaler")
    one = BoundedStatistic([1.0], l1=1.0, l2=1.0, linf=1.0)
    for share in (0.3, 0.4):
        session.gaussian(one, session.plan_gaussian(1, share=share, purpose="means"))
    session.laplace(one, epsilon=0.05, purpose="counts")
    session.gumbel_top_k(one, 1, epsilon=0.05, purpose="selection")
    return session.report(public={"n_records": 500}, assumptions=("each label is declared",))


def forged(report, **changes):
    """The report with other fields, as somebody who writes cards by hand would make it."""
    return PrivacyReport(**{**report.__getstate__(), **changes})


def rows_with(report, index, **changes):
    rows = report.mechanisms
    rows[index] = {key: value for key, value in {**rows[index], **changes}.items() if value is not None}
    return rows


def check(report, tmp_path, suffix="html", *, text=lambda text: text, **given):
    path = report.card(tmp_path / f"card.{suffix}", **given)
    path.write_text(text(path.read_text()))
    return verify_card(path)


def with_data(path, change):
    """The card with changed data in its ledger, and words as they were."""
    page = path.read_text()
    found = re.search(r'(id="skdp-card">\n|```json\n)(.*?)(\n</script>|\n```)', page, re.DOTALL)
    document = json.loads(found[2])
    change(document)
    path.write_text(page[: found.start(2)] + json_text(document) + page[found.end(2) :])
    return path


# ---------------------------------------------------------------------- what it says


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_card_says_what_was_claimed_and_is_verified(report, tmp_path, suffix):
    path = report.card(tmp_path / f"card.{suffix}", notes="Intended use: teaching.")
    page = path.read_text()
    power = 1.0 - float(tradeoff(report.mu, 0.05))
    for part in (
        "Model card of DPStandardScaler",
        "Protected: one record.",
        "the number of records is public",
        "4 releases",
        f"at most {math.ceil(1e4 * power) / 100:.3g} %",
        "each label is declared",
        "means of columns",
        "Intended use: teaching.",
        "skdp verify FILE",
        "other fits, statistics and scores on the same records",
        skdp.__version__,
        np.__version__,
    ):
        assert part in page
    found = verify_card(path)
    assert (found["verified"], found["problems"], found["text_checked"]) == (True, [], True)
    assert (found["epsilon"], found["delta"], found["releases"]) == (1.0, 1e-6, 4)
    assert found["recomputed"] == pytest.approx(report.rechecked, rel=1e-12)
    assert found["recomputed"] < 1.0


def small(kind):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 3))
    y = (X[:, 0] > 0).astype(int)
    given = {"epsilon": 1.0, "delta": 1e-5}
    if kind == "auto":
        return skdp.DPLogisticRegression(**given, classes=[0, 1]).fit(X, y)
    if kind == "groups":
        groups = np.arange(300) // 2
        return skdp.DPLinearRegression(**given, unit="group", adjacency="zero-out").fit(X, X[:, 1], groups=groups)
    if kind == "batches":
        return skdp.DPSGDClassifier(**given, classes=[0, 1], batch_size=30).fit(X, y)
    if kind == "minimiser":
        return skdp.DPTwoStageClassifier(**given, classes=[0, 1], second_stage="amp", n_nonzero_coefs=2).fit(X, y)
    if kind == "net":
        return nn.DPMLPClassifier(**given, classes=[0, 1], hidden_layer_sizes=(2,), batch_size=30).fit(X, y)
    if kind == "search":
        base = skdp.DPLogisticRegression(classes=[0, 1])
        return skdp.model_selection.DPRandomizedSearch(base, {"C": [0.1, 1.0]}, **given).fit(X, y)
    if kind == "threshold":
        base = skdp.DPLogisticRegression(classes=[0, 1])
        return skdp.model_selection.DPTunedThresholdClassifier(base, **given).fit(X, y)
    if kind == "statistics":
        return skdp.statistics.describe(X, **given)
    model = skdp.DPLogisticRegression(**given, classes=[0, 1]).fit(X, y)
    return skdp.metrics.evaluate(model, X, y, **given)


KINDS = ["auto", "groups", "minimiser", "search", "threshold", "statistics", "scores"]
SLOW = [pytest.param(kind, marks=pytest.mark.thorough) for kind in ("batches", "net")]


@pytest.mark.parametrize("kind", [*KINDS, *SLOW])
def test_cards_of_all_kinds_of_fits_are_verified(kind, tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = small(kind)
    report = model.privacy_
    assert report.rechecked <= report.epsilon * (1 + 1e-9)
    given = {"model": model} if hasattr(model, "get_params") else {}
    for suffix in SUFFIXES:
        assert check(report, tmp_path, suffix, **given)["problems"] == []
    path = tmp_path / "report.json"
    path.write_text(report.to_json())
    assert verify_card(path)["problems"] == []
    assert PrivacyReport.from_json(report.to_json()) == report
    # A person knows what every release is for.
    assert all(row["purpose"].rpartition(": ")[2] in MEANINGS for row in report.mechanisms)


@pytest.mark.parametrize("estimator", ["PrivacySession", "MyAlgorithm"])
def test_the_words_of_a_user_are_not_explained(estimator):
    session = PrivacySession(epsilon=1.0, delta=1e-6, estimator=estimator)
    session.gaussian(BoundedStatistic([1.0], l2=1.0), session.plan_gaussian(1, purpose="search"))
    shown = session.report()._repr_html_()
    assert "<td>search</td>" in shown
    assert "the parameters that are searched" not in shown
    assert "What the releases are" not in shown


def test_skdp_explains_the_purposes_of_its_own_fits():
    def below(cls):
        return {cls}.union(*map(below, cls.__subclasses__()))

    for each in walk_packages(skdp.__path__, "skdp."):
        if not each.name.endswith("__main__"):
            import_module(each.name)
    own = [cls for cls in below(PrivateFit) if cls.__module__.startswith("skdp.")]
    kinds = [cls for cls in own if not inspect.isabstract(cls)]
    # Bases of networks are not abstract; comparisons are called by their functions.
    bases = {"ConvolutionalNet", "SequenceNet"}
    names = {getattr(cls, "_called", None) or cls.__name__ for cls in kinds} - bases
    assert len(names) > 40
    assert {name for name in names if not meaning_of("search", name).what} == set()


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_model_without_privacy_says_so_and_is_never_verified(suffix, tmp_path, capsys):
    X = np.random.default_rng(0).normal(size=(50, 2))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = skdp.DPLinearRegression(epsilon=math.inf).fit(X, X[:, 0])
    path = model.privacy_.card(tmp_path / f"card.{suffix}", model=model)
    assert "NOT PRIVATE" in path.read_text()
    for part in ("differentially private. Whatever", "The claim holds", "true positive rate of at most"):
        assert part not in path.read_text()
    assert main(["verify", str(path)]) == 1
    assert "the results are not private" in capsys.readouterr().err


def test_a_card_holds_no_seed_no_accountant_and_no_values(tmp_path):
    X = np.random.default_rng(0).normal(size=(300, 3))
    accountant = skdp.BudgetAccountant(epsilon=1.0, delta=1e-5, path=tmp_path / "secret-place.ledger")
    inner = skdp.DPLogisticRegression(classes=[0, 1], random_state=987654321, accountant=False)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = skdp.model_selection.DPRandomizedSearch(
            inner, {"C": [0.1, 1.0]}, epsilon=0.5, delta=1e-6, accountant=accountant
        ).fit(X, (X[:, 0] > 0).astype(int))
    page = found.privacy_.card(tmp_path / "card.md", model=found).read_text()
    assert "DPLogisticRegression(" in page
    assert "987654321" not in page
    assert "secret-place" not in page


def test_parameters_are_shown_by_value_where_they_are_plain_and_else_by_kind(report, tmp_path):
    class Model:
        privacy_ = report

        def get_params(self, deep=True):
            return {
                "rate": np.float32(0.5),
                "public_rows": np.arange(1000.0),
                "few": np.array([1, 2]),
                "classes": [1, 2],
                "validation": ([[0.4321, 0.75]] * 3, [0, 1]),
                "path": "/home/alice/study/net.npz",
                "place": Path("study"),
                "many": list(range(99)),
                "grid": {"random_state": [123456789], "model__random_state": [987654321], "C": [0.1]},
                "seed": 31337,
                "by_column": {"a": (1, None)},
                "function": np.linalg.norm,
                "object": object(),
                "long": "x" * 10_000,
                "random_state": 31337,
            }

    page = report.card(tmp_path / "card.html", model=Model()).read_text()
    for part in (
        "0.5",
        "array of shape (1000,) and type float64",
        "array of shape (2,) and type int64",
        "[1, 2]",
        "[list of 3, list of 2]",
        "a path",
        "list of 99",
        "norm",
        "object",
        "(10002 characters)",
    ):
        assert f"{part}</td>" in page
    assert "{&#x27;a&#x27;: [1, None]}" in page
    for part in ("31337", "123456789", "987654321", "alice", "0.4321"):
        assert part not in page
    assert " at 0x" not in page


def test_a_card_is_of_one_fit(report, tmp_path):
    class Other:
        privacy_ = forged(report, epsilon=2.0)

    for model in (Other(), object()):
        with pytest.raises(ValueError, match="model must be the fitted object with this report"):
            report.card(tmp_path / "card.md", model=model)
    assert list(tmp_path.iterdir()) == []


# ---------------------------------------------------------------------- files


def test_files(report, tmp_path):
    for name in ("card.pdf", "card", "card.json", ""):
        with pytest.raises(ValueError, match=r"path must end in one of \['.html'"):
            report.card(tmp_path / name)
    with pytest.raises(FileNotFoundError, match="make it first"):
        report.card(tmp_path / "no" / "card.md")
    (tmp_path / "folder.md").mkdir()
    with pytest.raises(IsADirectoryError, match="must be a file"):
        report.card(tmp_path / "folder.md")
    path = tmp_path / "card.MD"
    path.write_text("before")
    assert report.card(str(path)) == path
    assert verify_card(path)["problems"] == []
    assert sorted(each.name for each in tmp_path.iterdir()) == ["card.MD", "folder.md"]


def test_a_write_that_fails_leaves_what_was_there(report, tmp_path, monkeypatch):
    path = tmp_path / "card.md"
    path.write_text("before")

    def fail(source, target):
        raise OSError("no space")

    monkeypatch.setattr("os.replace", fail)
    with pytest.raises(OSError, match="no space"):
        report.card(path)
    assert [each.read_text() for each in tmp_path.iterdir()] == ["before"]


def test_the_report_that_a_party_writes_is_verified(report, tmp_path):
    """`skdp party` dumps the dict of a report, in which Python's JSON has literals that JSON has not."""
    path = tmp_path / "report.json"
    best = forged(report, plan_mu=math.inf, accountant=ACCOUNTANTS["basic"])
    path.write_text(json.dumps(best.to_dict(), indent=2))
    assert "Infinity" in path.read_text()
    found = verify_card(path)
    assert (found["verified"], found["text_checked"]) == (True, False)
    path.write_text(path.read_text().replace('"epsilon": 1.0', '"epsilon": 0.5', 1))
    assert not verify_card(path)["verified"]


def test_line_ends_and_a_mark_of_order_change_nothing(report, tmp_path):
    path = report.card(tmp_path / "card.md")
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes().replace(b"\n", b"\r\n"))
    assert verify_card(path)["problems"] == []


# ---------------------------------------------------------------------- text that wants to be markup

EVIL = "<script>alert(1)</script> | # x\n## y ``` [a](javascript:b) &lt; \x1b[2K \u202e http://z.example \ud800"


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_text_stays_text(report, tmp_path, suffix):
    class Model:
        privacy_ = forged(
            report,
            estimator=EVIL,
            assumptions=[EVIL, "```\n", *report.assumptions],
            leaks=[EVIL],
            public={EVIL: EVIL, "classes": [EVIL]},
            erratum=EVIL,
            mechanisms=rows_with(report, 0, purpose=EVIL),
        )

        def get_params(self, deep=True):
            return {EVIL: EVIL, "</script><script>": "</script><script>alert(2)"}

    path = Model.privacy_.card(tmp_path / f"card.{suffix}", model=Model(), notes=EVIL + "\n```\n</script>")
    page = path.read_text(encoding="utf-8")
    assert page.count("<script") == page.count("</script") == (suffix == "html")
    assert "\x1b" not in page
    assert "\u202e" not in page
    assert "\n## y" not in page
    if suffix == "md":
        assert page.count("```") == 2
        assert not re.search(r"(?<!\\)\]\(", page.partition("```")[0])
    assert verify_card(path)["problems"] == []
    for shown in (repr(Model.privacy_), Model.privacy_._repr_html_()):
        assert "\x1b" not in shown
        assert "\u202e" not in shown
        assert "\n## y" not in shown
    assert "<script" not in Model.privacy_._repr_html_()


# ---------------------------------------------------------------------- forgeries


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize(
    ("said", "instead"),
    [
        ("epsilon", ("1", "0.1")),
        ("delta", ("1e-06", "1e-09")),
        ("protects", ("one record", "one person")),
        ("n_records", ("500", "50000")),
    ],
)
def test_a_fact_that_the_ledger_does_not_say(report, tmp_path, suffix, said, instead):
    def change(page):
        cells = "<tr><th>{}</th><td>{}</td>" if suffix == "html" else "| {} | {} |"
        assert page.count(cells.format(said, instead[0])) == 1
        return page.replace(cells.format(said, instead[0]), cells.format(said, instead[1]))

    found = check(report, tmp_path, suffix, text=change)
    assert not found["verified"]
    (problem,) = found["problems"]
    assert "does not say what its ledger says" in problem


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize(
    "change",
    [
        lambda page: page.replace("4 releases", "3 releases"),
        lambda page: re.sub(r"at most [0-9.]+ %", "at most 5.01 %", page),
        lambda page: page.replace("\n", "\nEpsilon is 0.01.\n", 1),
        lambda page: page + "\nEpsilon is 0.01.\n",
        lambda page: page.replace("each label is declared", "", 1),
        lambda page: page.replace('"epsilon": 1.0,', '"epsilon": 0.5, "epsilon": 1.0,'),
    ],
    ids=["count", "attack", "line", "last line", "assumption", "key twice"],
)
def test_other_words(report, tmp_path, suffix, change):
    page = report.card(tmp_path / f"a.{suffix}").read_text()
    assert change(page) != page
    path = tmp_path / f"b.{suffix}"
    path.write_text(change(page))
    try:
        assert not verify_card(path)["verified"]
    except ValueError as error:
        assert "stands twice" in str(error)


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"epsilon": 0.1, "plan_mu": None, "rechecked": None}, "the listed releases cost epsilon 0."),
        ({"epsilon": 0.1, "plan_mu": None, "mechanisms": []}, "lists no release"),
        ({"epsilon": 0.9, "rechecked": None}, "the planned releases cost epsilon"),
        ({"delta": 1e-9}, "the listed releases cost epsilon"),
        ({"delta": 0.0}, "is below"),
        ({"rechecked": 0.2}, "a recheck found epsilon 0.2"),
        ({"rechecked": 2.0}, "a recheck found epsilon 2"),
    ],
)
def test_a_claim_that_the_ledger_does_not_pay(report, tmp_path, suffix, changes, message):
    """Words and data agree, and the epsilon of the ledger is another one."""
    found = check(forged(report, **changes), tmp_path, suffix)
    assert not found["verified"]
    assert any(message in problem for problem in found["problems"])


def test_no_problem_names_two_numbers_that_agree(report, tmp_path):
    """A card whose claim alone was changed has a recheck that is right, and above the claim."""
    found = check(forged(report, epsilon=0.1, plan_mu=None), tmp_path)
    assert any("the listed releases cost epsilon" in problem for problem in found["problems"])
    assert not any("a recheck found" in problem for problem in found["problems"])


def test_the_number_that_stands_for_the_records_is_an_assumption():
    X = np.random.default_rng(0).normal(size=(100, 2))
    for n_public in (None, 100):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = skdp.DPLinearRegression(epsilon=1.0, delta=1e-5, n_public=n_public).fit(X, X[:, 0])
        lines = [line for line in model.privacy_.assumptions if "n_public was not computed" in line]
        assert len(lines) == (n_public is not None)


@pytest.mark.parametrize(
    ("index", "changes", "message"),
    [
        (0, {"noise_std": 0.01}, "noise_std of a 'gaussian' row must be at least noise_multiplier x sensitivity"),
        (0, {"sensitivity": 100.0}, "noise_std of a 'gaussian' row must be at least"),
        (0, {"noise_multiplier": 0.5}, "noise_std of a 'gaussian' row must be at least|releases cost"),
        (0, {"sensitivity": None}, r"A complete 'gaussian' row needs \['sensitivity'\]"),
        (0, {"noise_std": None}, r"A complete 'gaussian' row needs \['noise_std'\]"),
        (0, {"grid": None}, r"A complete 'gaussian' row needs \['grid'\]"),
        (0, {"purpose": None}, r"A complete 'gaussian' row needs \['purpose'\]"),
        (0, {"count": 2}, "the listed releases cost"),
        (0, {"count": 2**53}, "the listed releases cost"),
        (2, {"sensitivity": None}, r"A complete 'laplace' row needs \['sensitivity'\]"),
        (2, {"epsilon": 1e300}, "cannot be computed"),
        (3, {"grid": None}, r"A complete 'gumbel_top_k' row needs \['grid'\]"),
        (3, {"epsilon": 5.0}, "the listed releases cost"),
    ],
)
def test_a_row_that_was_changed(report, tmp_path, index, changes, message):
    found = check(forged(report, mechanisms=rows_with(report, index, **changes)), tmp_path)
    assert not found["verified"]
    assert re.search(message, "\n".join(found["problems"]))


def test_a_row_that_was_removed_changes_the_number_of_releases(report, tmp_path):
    path = with_data(report.card(tmp_path / "card.md"), lambda data: data["report"]["mechanisms"].pop())
    problems = "\n".join(verify_card(path)["problems"])
    assert "the card states 4 releases, and its ledger lists 3" in problems
    assert "does not say what its ledger says" in problems
    # If the number and the words are changed too, nothing shows it: the rest costs less than the claim.
    rows = report.mechanisms[:-1]
    whole = forged(report, mechanisms=rows, rechecked=None, noise=noise_name(rows, False))
    assert check(whole, tmp_path)["verified"]


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda data: data["report"].pop("epsilon"), r"missing: \['epsilon'\]"),
        (lambda data: data["report"].pop("mechanisms"), r"missing: \['mechanisms'\]"),
        (lambda data: data["report"].update(more=1), r"unknown: \['more'\]"),
        (lambda data: data["report"].update(epsilon="nan"), "epsilon must be a number >= 0"),
        (lambda data: data["report"].update(epsilon=True), "epsilon must be a number >= 0"),
        (lambda data: data["report"].update(epsilon="1"), "epsilon must be a number >= 0"),
        (lambda data: data["report"].update(epsilon=-1.0), "epsilon must be a number >= 0"),
        (lambda data: data["report"].update(epsilon=10**400), "epsilon must be a number that is a float"),
        (lambda data: data["report"].update(plan_mu=-1.0), "plan_mu must be a number >= 0"),
        (lambda data: data["report"]["mechanisms"][0].update(count=10**400), "count of a 'gaussian' row must be"),
        (lambda data: data["report"].update(delta=None), "delta must be a number >= 0"),
        (lambda data: data["report"].update(delta=2.0), "delta must be in"),
        (lambda data: data["report"].update(assumptions="none"), "assumptions must be a list"),
        (lambda data: data["report"].update(adjacency="any"), "adjacency must be one of"),
        (lambda data: data["report"].update(mechanisms=[1]), "a row of the ledger must be an object"),
        (
            lambda data: data["report"]["mechanisms"][0].update(name="staircase"),
            "name of a ledger row must be one of",
        ),
        (lambda data: data["report"]["mechanisms"][0].update(noise_std=[1]), "noise_std of a 'gaussian' row"),
        (lambda data: data["report"]["mechanisms"][0].update(count=-1), "count of a 'gaussian' row"),
        (lambda data: data["report"]["mechanisms"][0].update(noise_multiplier="nan"), "must be a number"),
        (lambda data: data.update(report=None), "a report must be a JSON object"),
        (lambda data: data.pop("releases"), "the card states None releases"),
        (lambda data: data.pop("attack"), "the card states the rates {} of an attacker"),
        (
            lambda data: data["attack"].update(true_positive_rate=0.05),
            "'true_positive_rate': 0.05} of an attacker",
        ),
        (
            lambda data: data["attack"].update(true_positive_rate="nan"),
            "'true_positive_rate': 'nan'} of an attacker",
        ),
        (lambda data: data.pop("versions"), "cannot be made from its ledger"),
        (lambda data: data.update(model=[1]), "model must be null or have"),
        (lambda data: data.update(more=1), "unknown fields"),
    ],
)
def test_data_that_no_card_has(report, tmp_path, suffix, change, message):
    path = with_data(report.card(tmp_path / f"card.{suffix}"), change)
    found = verify_card(path)
    assert not found["verified"]
    assert re.search(message, "\n".join(found["problems"]))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("# My model\n", "its ledger is no JSON"),
        ("{", "is no JSON"),
        ("{}", "its JSON is no"),
        ("[1]", "its JSON is no"),
        ('{"format": "skdp model card", "version": 2}', "is a card of version 2"),
        ('{"format": "skdp model card", "version": "1"}', "its version is '1'"),
        ('{"a": 1, "a": 2}', "stands twice"),
        ('{"a":' * 100_000, "is no JSON"),
        ('{"mechanisms": ' + "1" * 5000 + "}", "is no JSON"),
    ],
)
def test_a_file_that_is_no_card(tmp_path, capsys, text, message):
    block = f'<script type="application/json" id="skdp-card">\n{text}\n</script>'
    for name, page in (("r.json", text), ("c.md", f"```json\n{text}\n```\n"), ("c.html", block)):
        path, wanted = tmp_path / name, message
        path.write_text(page)
        if name == "r.json" and "format" in text:
            wanted = "its JSON is no report"
        with pytest.raises(ValueError, match=re.escape(wanted)):
            verify_card(path)
        assert main(["verify", str(path)]) == 2
        assert wanted in capsys.readouterr().err
        path.write_text("# My model\n")
        with pytest.raises(ValueError, match="is no JSON" if name == "r.json" else "one ledger as JSON, got 0"):
            verify_card(path)
        path.write_text(2 * page)
        with pytest.raises(ValueError, match=r"."):
            verify_card(path)


def test_a_file_that_cannot_be_read(tmp_path, capsys):
    assert main(["verify", str(tmp_path / "none.md")]) == 2
    assert "none.md" in capsys.readouterr().err
    assert main(["verify", str(tmp_path)]) == 2
    (tmp_path / "image.html").write_bytes(bytes(range(256)))
    assert main(["verify", str(tmp_path / "image.html")]) == 2
    assert "no UTF-8 text" in capsys.readouterr().err


def test_numbers_that_sampling_makes_large_end_soon(tmp_path):
    """A card is read from anybody: it may ask for 2^53 releases, and gets an answer."""
    row = {
        "name": "gaussian", "purpose": "steps", "count": 2**53, "noise_multiplier": 1.0, "noise_std": 1.0,
        "sensitivity": 1.0, "grid": 1e-6, "sampling": "Poisson", "sampling_rate": 1e-3,
    }  # fmt: skip
    report = PrivacyReport(epsilon=1.0, delta=1e-5, adjacency="zero-out", mechanisms=[row])
    assert not check(report, tmp_path)["verified"]


def test_a_card_of_another_version_says_which_one_to_use(report, tmp_path):
    path = report.card(tmp_path / "card.md")
    path.write_text(path.read_text().replace(skdp.__version__, "99.0"))
    assert verify_card(path)["problems"] == []
    path.write_text(path.read_text().replace("Protected: one record", "Protected: a record"))
    (problem,) = verify_card(path)["problems"]
    assert "The card names skdp 99.0" in problem


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"mechanisms": [{"name": "gaussian", "noise_multiplier": 1.0, "count": 0}], "epsilon": 0.0},
            "no release",
        ),
        ({"plan_mu": None}, "the plan of the releases is missing"),
        ({"plan_mu": 0.0}, "and the plan has 0"),
        ({"plan_mu": math.inf}, "no mu is stated for the plan"),
        ({"noise": "hardware"}, "the card states the noise 'hardware'"),
        ({"accountant": "audited"}, "the card states the accountant 'audited'"),
        ({"accountant": ACCOUNTANTS["gaussian"]}, "which its releases do not have"),
        ({"accountant": ACCOUNTANTS["pure"]}, "which its releases do not have"),
        ({"assumptions": ["none"]}, "the assumption of unit='record' is missing"),
        ({"unit": "group"}, "the assumption of unit='group' is missing"),
        ({"leaks": [SEEDED]}, "for testing only: no protection"),
    ],
)
def test_words_that_follow_from_rows_and_unit(report, tmp_path, suffix, changes, message):
    problems = check(forged(report, **changes), tmp_path, suffix)["problems"]
    assert any(message in problem for problem in problems)


@pytest.mark.parametrize("each", ["\x85", "\u2028", "\u2029", "\x0b", "\x0c", "\x1c", "\x1e", "\x1b", "\x7f"])
def test_rows_that_another_line_end_hides(report, tmp_path, each):
    """Python ends a line at each of these, and a reader of Markdown shows one row less."""
    path = report.card(tmp_path / "card.md")
    path.write_text(path.read_text().replace("\n| guarantee", f"{each}| guarantee"), newline="\n")
    with pytest.raises(ValueError, match="control character"):
        verify_card(path)


def test_a_page_that_is_read_as_json(report, tmp_path):
    """A browser shows the page of a file that starts as a report."""
    evil = forged(report, erratum="<style>body{visibility:hidden}</style><h1>epsilon 0.01</h1>")
    assert "<" not in evil.to_json()
    assert PrivacyReport.from_json(evil.to_json()) == evil
    for name in ("report.html", "report.md", "report.txt"):
        path = tmp_path / name
        path.write_text(evil.to_json())
        with pytest.raises(ValueError, match=r"must be in a file \.json"):
            verify_card(path)
    path = tmp_path / "card.json"
    path.write_text(json.dumps({"format": "skdp model card"}))
    with pytest.raises(ValueError, match="its JSON is no report"):
        verify_card(path)


def test_json_that_takes_long(report, tmp_path):
    keys = ",".join(f'"k{i}":1' for i in range(100_000))
    path = tmp_path / "report.json"
    for text, message in (
        (f'{{{keys},"k99999":2}}', "the key 'k99999' stands twice"),
        (report.to_json().replace('"n_records": 500', f'"n": {"[" * 300}{"]" * 300}'), "more than 100 deep"),
    ):
        path.write_text(text)
        with pytest.raises(ValueError, match=message):
            verify_card(path)
    compared = []

    class Name(str):
        __slots__ = ()
        __hash__ = str.__hash__

        def __eq__(self, other):
            compared.append(self)
            return str.__eq__(self, other)

    names = [Name(f"k{i}") for i in range(1000)]
    assert list(decode._once([(name, 1) for name in names])) == names
    assert len(compared) < 10 * len(names)  # a search among all names would compare half a million
    row = {**report.mechanisms[0], "threshold": 1e4, "max_words": 10**6, "delta": 1e-9}
    found = check(forged(report, mechanisms=[row] * 50), tmp_path)
    assert any("vocabularies of more than 1,000,000 words" in problem for problem in found["problems"])


# ---------------------------------------------------------------------- adjacency, leaks


@pytest.mark.parametrize("adjacency", ["zero-out", "add-remove"])
def test_the_rates_of_a_card_hold_for_an_attacker(adjacency, tmp_path):
    """The best tests of a Gaussian release, exactly: one of value or nothing, one of two values."""
    session = PrivacySession(epsilon=4.0, delta=1e-6, adjacency=adjacency)
    session.gaussian(BoundedStatistic([1.0], l2=1.0), session.plan_gaussian(1))
    report = session.report()
    page = report.card(tmp_path / "card.md").read_text()
    there, both = (float(rate) / 100 for rate in re.findall(r"at most ([0-9.]+) %", page))
    multiplier = report.mechanisms[0]["noise_multiplier"]
    one, two = (1.0 - float(tradeoff(distance / multiplier, 0.05)) for distance in (1.0, 2.0))
    assert one <= there < two <= both  # the bound for presence would be false of two values
    assert there == pytest.approx(one, rel=0.01)
    assert both == pytest.approx(two, rel=0.01)
    assert "as likely as if the data of one" not in page
    words = {
        "zero-out": ("had been empty", "is there or empty"),
        "add-remove": ("had been absent", "is in the data"),
    }
    for part in (*words[adjacency], "Values are protected less: one who tells apart two values of one record"):
        assert part in page
    assert verify_card(tmp_path / "card.md")["problems"] == []
    state = forged(report, plan_mu=math.inf).__getstate__()
    by_claim = min(1.0, math.exp(8.0) * 0.05 + (1.0 + math.exp(4.0)) * 1e-6)
    assert Curves(state).power_two_values(0.05) <= by_claim


def test_one_rate_under_replace_one(report, tmp_path):
    page = report.card(tmp_path / "card.md").read_text()
    assert "as likely as if the data of one record had been different" in page
    assert len(re.findall(r"at most ([0-9.]+) %", page)) == 1


def leaking(seed=None):
    X = np.random.default_rng(0).normal(size=(300, 2))
    model = skdp.DPLogisticRegression(epsilon=1.0, delta=1e-5, random_state=seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return make_pipeline(StandardScaler(), model).fit(X, (X[:, 0] > 0).astype(int))[-1]


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_leaks_are_no_assumptions(suffix, tmp_path, capsys):
    model = leaking()
    report = model.privacy_
    assert len(report.leaks) == 2
    for part, line in zip(("label set was inferred", "StandardScaler learnt"), report.leaks):
        assert part in line
        assert not any(part in each for each in report.assumptions)
        assert f"leaks       {line}" in str(report)
        assert f'<p class="skdp-bad">Leak: {html.escape(line)}</p>' in report._repr_html_()
    path = report.card(tmp_path / f"card.{suffix}", model=model)
    page = path.read_text()
    assert page.count("Not covered by the claim: leaks of this fit") == 2
    claim = 'skdp-bad">This fit has leaks' if suffix == "html" else "\n**This fit has leaks"
    assert (
        page.index(claim)
        < page.index("as if the data of one")
        < page.index("label set was")
        < page.index("The claim holds if")
    )
    assert main(["verify", str(path)]) == 0
    assert capsys.readouterr().out.count("\nleaks       ") == 2
    assert verify_card(path)["leaks"] == report.leaks
    # A card without them is another text.
    text = re.sub("(?m)^.*label set was inferred.*$", "", page, count=1)
    path.write_text(text)
    assert not verify_card(path)["verified"]


@pytest.mark.parametrize("suffix", [*SUFFIXES, "json"])
def test_a_seeded_fit_is_never_verified(suffix, tmp_path, capsys):
    report = leaking(7).privacy_
    assert report.leaks[-1] == SEEDED
    assert not any("seed" in line for line in report.assumptions)
    path = tmp_path / f"card.{suffix}"
    if suffix == "json":
        path.write_text(report.to_json())
    else:
        report.card(path)
        assert "FOR TESTING ONLY" in path.read_text()
    assert main(["verify", str(path)]) == 1
    shown = capsys.readouterr()
    assert f"- the fit is {SEEDED}" in shown.err
    assert "by other code" in shown.out
    # Without the leak the noise says it.
    hidden = forged(report, leaks=report.leaks[:-1])
    assert any("states the noise" in problem for problem in check(hidden, tmp_path)["problems"])


def test_fits_inside_hand_on_their_leaks():
    X = np.random.default_rng(0).normal(size=(300, 2))
    inner = make_pipeline(StandardScaler(), skdp.DPLogisticRegression(classes=[0, 1]))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = skdp.model_selection.compare([inner], X, (X[:, 0] > 0).astype(int), epsilon=1.0, delta=1e-5)
    assert sum("StandardScaler learnt" in line for line in found.privacy_.leaks) == 1
    assert not any("StandardScaler" in line for line in found.privacy_.assumptions)


@pytest.mark.parametrize(
    "changes",
    [
        {"epsilon": 0.1},
        {"epsilon": 100.0},
        {"delta": 1e-9},
        {"unit": "group"},
        {"adjacency": "add-remove"},
        {"n_public": 9},
    ],
    ids=lambda changes: next(iter(changes)),
)
@pytest.mark.filterwarnings("ignore::skdp.exceptions.UtilityWarning")  # a hundred records are few
def test_parameters_that_were_set_after_the_fit(changes, tmp_path):
    X = np.random.default_rng(0).normal(size=(100, 2))
    given = {"adjacency": "add-remove", "n_public": 100} if "n_public" in changes else {}
    model = skdp.DPLinearRegression(epsilon=1.0, delta=1e-5, **given).fit(X, X[:, 0])
    (name,) = changes
    with pytest.raises(ValueError, match=rf"the parameter {name}=.* was set after the fit. Call model.set_params"):
        model.privacy_.card(tmp_path / "card.md", model=model.set_params(**changes))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("each", ["\u3164", "\u2800", "\u034f", "\ufe0f", "\u00a0", "\u115f", "e" + 30 * "\u0316"])
def test_characters_that_nobody_sees_are_shown_by_code(each):
    assert f"{ord(each[-1]):x}}}" in plain(f"a{each}b")
    assert plain("Zürich, ὕδωρ, 한국어, हिन्दी, ไม้") == "Zürich, ὕδωρ, 한국어, हिन्दी, ไม้"


def test_notes_that_want_to_be_markdown(report, tmp_path):
    notes = "- ---\n+ a\n1. a\n===\n    code\n$x$\nwww.evil.example\na@b.example"
    path = report.card(tmp_path / "card.md", notes=notes)
    lines = path.read_text().splitlines()
    begin = lines.index("## Notes") + 4
    assert lines[begin : begin + 8] == [
        "- \\- ---", "- \\+ a", "- 1\\. a", "- \\===", "- code", "- \\$x\\$",
        "- www\\.evil.example", "- a\\@b.example",
    ]  # fmt: skip
    assert verify_card(path)["verified"]


# ---------------------------------------------------------------------- the command


def test_the_command_prints_no_control_characters_and_rounds_up(report, tmp_path, capsys):
    evil = "X\x1b[1A\x1b[2K\rverified"
    path = forged(report, estimator=evil, epsilon=1.00000000049).card(tmp_path / "card.md")
    assert main(["verify", str(path)]) == 0
    shown = capsys.readouterr().out
    assert "\x1b" not in shown
    assert "\r" not in shown
    assert "states      epsilon 1.00000001," in shown
    forged(report, noise=evil).card(path)
    assert main(["verify", str(path)]) == 1
    path = tmp_path / f"a{evil[:5]}.md"
    path.write_text("x")
    assert main(["verify", str(path)]) == 2
    shown = capsys.readouterr()
    assert "\x1b" not in shown.out + shown.err


def test_the_command(report, tmp_path, capsys):
    path = report.card(tmp_path / "card.html")
    assert main(["verify", str(path)]) == 0
    said = " ".join(capsys.readouterr().out.split())
    for part in (
        "one fit of DPStandardScaler",
        "epsilon 1, delta 1e-06, for one record",
        "lists 4 releases",
        "the plan pays epsilon 0.",
        "Not checked, but as their author states them: unit, adjacency, sensitivities,",
    ):
        assert part in said
    assert main(["verify", str(path), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["verified"] is True
    assert found["recomputed"] == pytest.approx(report.rechecked)
    path.write_text(path.read_text().replace("<td>1e-06</td>", "<td>1e-09</td>"))
    assert main(["verify", str(path)]) == 1
    assert "- line" in capsys.readouterr().err
    assert main(["verify", str(path), "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["verified"] is False


# ---------------------------------------------------------------------- the report


def test_json_is_strict_and_comes_back(report):
    for each in (report, forged(report, plan_mu=math.inf), forged(report, public={"C": math.inf})):
        text = each.to_json()
        json.loads(text, parse_constant=pytest.fail)
        again = PrivacyReport.from_json(text)
        assert again.to_json() == text
        assert str(again) == str(each)
    for text in ("", "[]", '{"epsilon": 1}', report.to_json()[:-5]):
        with pytest.raises(ValueError, match=r"."):
            PrivacyReport.from_json(text)


def test_the_print_says_that_the_claim_was_rechecked(report):
    assert f"recheck     the releases cost at most epsilon {report.rechecked:.4g}"[:-1] in str(report)
    assert "recheck  " not in str(forged(report, rechecked=None))


def test_delta_of_pure_releases_is_that_of_the_noise():
    session = PrivacySession(epsilon=1.0, delta=0.0)
    session.laplace(BoundedStatistic([1.0], l1=1.0), epsilon=0.9)
    report = session.report()
    assert 0.0 < report.delta < 1e-20
    assert f"{report.delta:.6g}"[:3] in str(report)
    assert "(0 but for the finite precision of the noise)" in str(report)


@pytest.mark.parametrize("alpha", [0.0, 0.01, 0.05, 0.5, 1.0])
def test_power_is_the_smaller_of_two_bounds(report, alpha):
    found = Curves(report.__getstate__()).power(alpha)
    by_claim = min(1.0, math.e * alpha + 1e-6, 1.0 - (1.0 - 1e-6 - alpha) / math.e)
    by_mu = 1.0 - float(tradeoff(report.mu, alpha))
    assert found == pytest.approx(min(by_claim, by_mu), abs=1e-8)
    assert alpha <= found + 1e-15
    assert Curves(forged(report, guarantee="none", epsilon=math.inf).__getstate__()).power(alpha) == 1.0


@pytest.mark.parametrize("key", ["sensitivity", "noise_std", "grid", "count", "purpose"])
def test_the_recheck_of_a_session_wants_whole_rows(report, key):
    row = {name: value for name, value in report.mechanisms[0].items() if name != key}
    recheck_epsilon([row], 1e-6)
    with pytest.raises(ValueError, match=rf"A complete 'gaussian' row needs \['{key}'\]"):
        recheck_epsilon([row], 1e-6, complete=True)
    with pytest.raises((ValueError, UnsupportedAccounting)):
        recheck_epsilon([{**row, "name": "staircase"}], 1e-6, complete=True)


def test_a_notebook_shows_a_report_on_a_background_of_its_own(report):
    """The page around may be white where the system is dark."""
    style = report._repr_html_().partition("</style>")[0]
    assert re.search(r"\.skdp \{[^}]*background: var\(--skdp-back\)", style)
    for text, back in re.findall(r"--skdp-text: #(\w+); --skdp-back: #(\w+)", style):
        assert abs(int(text[:2], 16) - int(back[:2], 16)) > 150
    assert style.count("--skdp-back: #") == 4  # light and dark, by the system and by the theme of the notebook


def test_reports_that_were_pickled_before_leaks_had_a_line(report):
    state = {name: value for name, value in report.__getstate__().items() if name != "leaks"}
    old = PrivacyReport.__new__(PrivacyReport)
    old.__setstate__(state)
    assert old == report
    document = {name: value for name, value in report.to_dict().items() if name != "leaks"}
    assert PrivacyReport.from_json(json.dumps(document)) == report
