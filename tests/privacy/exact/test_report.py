"""The report: what it says, what it computes, and that it can neither change nor leak."""

import copy
import json
import math
import pickle
import pickletools
import sys

import numpy as np
import pytest

from skdp.exceptions import UnsupportedAccounting
from skdp.privacy import BoundedStatistic, PrivacySession
from skdp.privacy.accounting import (
    calibrate_batches,
    gaussian_delta,
    gaussian_epsilon,
    noise_multiplier,
    pure_epsilon,
    recheck_epsilon,
    rows_epsilon,
    rows_mu,
    sampled_epsilon,
)
from skdp.privacy.report import PrivacyReport
from skdp.privacy.report.curves import Curves


def row(count=50, planned=50, epsilon=1.0, delta=1e-5):
    return {
        "name": "gaussian",
        "purpose": "gradients",
        "noise_multiplier": noise_multiplier(epsilon, delta, releases=planned),
        "count": count,
        "sampling": "full batch",
        "sensitivity": 2.0,
        "grid": 3.1e-9,
    }


def make(**changes):
    given = {
        "epsilon": 1.0,
        "delta": 1e-5,
        "adjacency": "replace-one",
        "accountant": "exact Gaussian DP",
        "noise": "Gaussian rounded to the grid 3.1e-9, OpenSSL ChaCha20",
        "public": {"n_records": np.int64(20190)},
        "assumptions": ["labels lie in classes"],
        "mechanisms": [row()],
        "estimator": "DPIGHTClassifier",
        "erratum": "Theorem 2.5.2 prints half the variance",
    }
    return PrivacyReport(**{**given, **changes})


def pure(count=3):
    rows = [{"name": "laplace", "purpose": "clip", "epsilon": 0.25, "count": count}]
    return make(epsilon=0.25 * 3, delta=0.0, mechanisms=rows, erratum=None)


def without_guarantee(guarantee="none"):
    return make(epsilon=math.inf, delta=0.0, guarantee=guarantee, mechanisms=[])


# ---------------------------------------------------------------------- what it holds


def test_attributes_are_the_ones_given():
    report = make(unit="group", numerical_error=(1e-9, 1e-20))
    assert (report.epsilon, report.delta, report.adjacency) == (1.0, 1e-5, "replace-one")
    assert (report.unit, report.guarantee, report.scope) == ("group", "proven", "one fit")
    assert report.public == {"n_records": 20190}
    assert report.assumptions == ["labels lie in classes"]
    assert report.mechanisms == [row()]
    assert report.numerical_error == [1e-9, 1e-20]
    assert report.estimator == "DPIGHTClassifier"
    assert "2.5.2" in report.erratum
    assert "ChaCha20" in report.noise
    assert report.accountant == "exact Gaussian DP"
    assert report.plan_mu is None


def test_what_is_made_of_released_numbers_stands_at_the_end():
    report = make(post_processing=("predictions are cut to [0, 3]",))
    assert report.post_processing == ["predictions are cut to [0, 3]"]
    report.post_processing.clear()
    for other in (report, pickle.loads(pickle.dumps(report)), PrivacyReport.from_dict(report.to_dict())):
        assert other == report
        assert "  afterwards  predictions are cut to [0, 3]\n  releases" in str(other)
        assert "predictions are cut to [0, 3]" in other._repr_html_()
    assert make().post_processing == []
    assert "afterwards" not in str(make())


def test_reports_of_earlier_versions_are_read():
    state = make().__getstate__()
    del state["post_processing"]
    old = PrivacyReport.__new__(PrivacyReport)
    old.__setstate__(state)
    for report in (old, PrivacyReport.from_dict(state)):
        assert report == make()
        assert str(report) == str(make())


def test_it_cannot_be_changed():
    report = make()
    before = report.to_dict()
    for name in ("epsilon", "mechanisms", "scope", "new", "_state"):
        with pytest.raises(AttributeError, match="cannot be changed"):
            setattr(report, name, 0.1)
    with pytest.raises(AttributeError, match="cannot be changed"):
        del report.epsilon
    report.mechanisms[0]["count"] = 0
    report.public.clear()
    report.assumptions.append("x")
    report.to_dict()["mechanisms"][0]["count"] = 0
    assert report.to_dict() == before


def test_it_keeps_no_hold_on_what_it_was_made_from():
    rows, public = [row()], {"n_records": 5}
    report = make(mechanisms=rows, public=public)
    rows[0]["count"] = 0
    public["n_records"] = 0
    assert report.mechanisms[0]["count"] == 50
    assert report.public == {"n_records": 5}


def assert_builtin(value):
    assert value is None or type(value) in (bool, int, float, str, list, dict)
    if isinstance(value, dict):
        for key, item in value.items():
            assert type(key) is str
            assert_builtin(item)
    elif isinstance(value, list):
        for item in value:
            assert_builtin(item)


def test_state_is_built_in_types_only():
    public = {
        "classes": np.array([0, 1]),
        "grid": np.float32(0.5),
        "flag": np.bool_(True),
        "shape": (3, 4),
        "nothing": None,
    }
    report = make(public=public, epsilon=np.float64(1.0))
    assert_builtin(report.to_dict())
    assert report.public["classes"] == [0, 1]
    assert report.public["grid"] == 0.5
    assert report.public["flag"] is True
    assert report.public["shape"] == [3, 4]
    modules = {
        arg.split()[0]
        for opcode, arg, _ in pickletools.genops(pickle.dumps(report, protocol=2))
        if opcode.name == "GLOBAL"
    }
    assert modules <= {"skdp.privacy.report", "copyreg", "copy_reg", "__builtin__", "builtins"}
    with pytest.raises(TypeError, match="built-in types only"):
        make(public={"data": object()})


def test_pickles_name_the_package_as_they_always_did():
    """A report of a session, pickled by protocol 2 when its class lay in the module ``skdp.privacy.report``."""
    old = pickle.dumps(make(), protocol=2)
    assert b"skdp.privacy.report\nPrivacyReport" in old
    assert b"report.report" not in old
    assert pickle.loads(old) == make()
    assert PrivacyReport.__module__ == "skdp.privacy.report"


@pytest.mark.parametrize("report", [make(), pure(), without_guarantee()], ids=["dp", "pure", "none"])
def test_round_trips_and_equality(report):
    for mutant in (
        pickle.loads(pickle.dumps(report)),
        copy.copy(report),
        copy.deepcopy(report),
        PrivacyReport.from_dict(report.to_dict()),
        PrivacyReport.from_dict(json.loads(json.dumps(report.to_dict()))),
    ):
        assert mutant == report
        assert hash(mutant) == hash(report)
        assert repr(mutant) == repr(report)
    assert report != make(delta=2e-5)
    assert report != "a report"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"guarantee": "maybe"}, "guarantee must be one of"),
        ({"adjacency": "replace"}, "adjacency must be one of"),
        ({"unit": "person"}, "unit must be"),
        ({"epsilon": -1.0}, "epsilon must be >= 0"),
        ({"epsilon": math.nan}, "epsilon must be >= 0"),
        ({"epsilon": math.inf}, "epsilon must be finite if guarantee is 'proven'"),
        ({"guarantee": "none"}, "inf otherwise"),
        ({"delta": 1.0}, "delta must be in"),
        ({"numerical_error": (0.1,)}, "numerical error must be a pair"),
        ({"numerical_error": (-0.1, 0.0)}, "numerical error must be a pair"),
        ({"mechanisms": [{"name": "staircase"}]}, "name of a ledger row"),
    ],
)
def test_wrong_reports_are_refused(changes, message):
    with pytest.raises(ValueError, match=message):
        make(**changes)


# ---------------------------------------------------------------------- what it shows


def test_repr_says_everything_once_in_a_terminal():
    text = repr(make(unit="group", numerical_error=(1e-9, 1e-20)))
    for part in (
        "Privacy of one fit of DPIGHTClassifier",
        "epsilon     1\n",
        "delta       1e-05",
        "proven",
        "replace-one (one group takes other values; the number of groups is public)",
        "exact Gaussian DP",
        "ChaCha20",
        "n_records=20190",
        "precision   of the noise: epsilon 1e-09 and delta 1e-20, included above",
        "Theorem 2.5.2",
        "labels lie in classes",
        "gradients",
        "noise multiplier",
        "26.3795",
        "100.0%",
        "multiplier: standard deviation of the noise / sensitivity",
        "sensitivity: the most that one group changes the released numbers (l2 norm)",
        "every release is gaussian and reads all groups",
    ):
        assert part in text
    assert len(text.splitlines()) <= 19
    assert "no privacy guarantee" in repr(without_guarantee())
    assert "no valid privacy proof" in repr(without_guarantee("unproven"))


@pytest.mark.parametrize("epsilon", [0.9999996, 1.0000004, 1.2345674, 3.00000049, 1e-5 / 3])
def test_shown_epsilon_is_never_below_the_claim(epsilon):
    shown = next(line for line in repr(make(epsilon=epsilon)).splitlines() if "epsilon" in line)
    assert epsilon * (1 - 1e-9) <= float(shown.split()[1]) <= epsilon * (1 + 1.1e-5)


def test_html_is_escaped():
    report = make(
        estimator="<script>alert(1)</script>",
        assumptions=["<b>&</b>"],
        public={"<i>": "<u>"},
        mechanisms=[{**row(), "purpose": "<img src=x>"}],
    )
    page = report._repr_html_()
    assert page.count("<table>") == 5
    for tag in ("<script", "<b>", "<i>", "<u>", "<img"):
        assert tag not in page
    assert "&lt;script&gt;" in page
    assert "&lt;img src=x&gt;" in page
    assert without_guarantee()._repr_html_().count("<table>") == 4
    assert "Not private" in without_guarantee()._repr_html_()
    assert "Not private" not in page


# ---------------------------------------------------------------------- what it computes


def test_epsilon_at_other_deltas():
    report = make()
    assert 1 - 1e-8 <= report.epsilon_at(1e-5) <= 1.0
    assert report.epsilon_at(1e-4) < 1.0 < report.epsilon_at(1e-6) < report.epsilon_at(1e-12)
    assert report.epsilon_at(1e-6) == pytest.approx(recheck_epsilon([row()], 1e-6), rel=1e-8)
    assert report.epsilon_at(1e-6) >= recheck_epsilon([row()], 1e-6)
    assert report.epsilon_at(0.0) == math.inf
    with pytest.raises(ValueError, match="delta must be in"):
        report.epsilon_at(1.0)


def test_numerical_error_is_paid_at_every_delta():
    report = make(numerical_error=(0.01, 1e-9))
    plain = make(epsilon=0.99, delta=(1e-5 - 1e-9) * math.exp(-0.01))
    for delta in (1e-4, 1e-6, 1e-8):
        ideal = (delta - 1e-9) * math.exp(-0.01)
        expected = 0.01 + gaussian_epsilon(report.mu, ideal)
        assert report.epsilon_at(delta) == pytest.approx(expected, rel=1e-9)
        assert report.epsilon_at(delta) >= plain.epsilon_at(delta)
    assert report.epsilon_at(1e-10) == math.inf
    assert report.epsilon_at(1e-9) == math.inf
    assert report.delta_at(0.005) == 1.0
    assert report.delta_at(3.0) >= 1e-9


def test_a_stopped_fit_claims_its_plan():
    # 50 releases were planned and 5 made: how many were made may depend on the data.
    whole, stopped = make(), make(mechanisms=[row(count=5, planned=50)])
    given = make(mechanisms=[row(count=5, planned=50)], plan_mu=whole.mu)
    for report in (stopped, given):
        assert report.mu == pytest.approx(whole.mu, rel=1e-9)
        for delta in (1e-3, 1e-5, 1e-8):
            assert report.epsilon_at(delta) == pytest.approx(whole.epsilon_at(delta), rel=1e-6)
        assert report.delta_at(0.5) == pytest.approx(whole.delta_at(0.5), rel=1e-6)
    assert stopped.mu > 3 * math.sqrt(5) * (1 / row()["noise_multiplier"]) * (1 - 1e-9)


def test_delta_at_inverts_epsilon_at():
    report = make()
    assert report.delta_at(1.0) <= 1e-5
    for delta in (1e-3, 1e-8, 1e-12):
        found = report.delta_at(report.epsilon_at(delta))
        assert found == pytest.approx(delta, rel=1e-5)
    assert 0.0 < report.delta_at(0.0) < 1.0
    with pytest.raises(ValueError, match="epsilon must be >= 0"):
        report.delta_at(-1.0)


def test_pure_fits():
    report = pure()
    assert report.epsilon_at(0.0) == 0.75
    assert report.delta_at(0.75) == 0.0
    assert 0.0 < report.delta_at(0.5) < 0.5
    assert 0.0 < report.epsilon_at(0.05) < 0.75
    # Fewer releases than planned: the claim stays that of the plan.
    stopped = pure(count=1)
    assert stopped.epsilon_at(0.0) == 0.75
    assert stopped.delta_at(0.5) >= report.delta_at(0.5)
    assert stopped.mu >= report.mu


def test_no_guarantee_stays_none():
    for guarantee in ("none", "unproven"):
        report = without_guarantee(guarantee)
        assert report.epsilon_at(0.5) == math.inf
        assert report.delta_at(100.0) == 1.0
        assert report.mu == math.inf
        assert type(report.event_for("rdp")).__name__ == "NonPrivateDpEvent"


def test_events_agree_with_the_claim_in_both_conventions():
    from dp_accounting import NeighboringRelation, pld, rdp

    report, relation = make(), NeighboringRelation.REPLACE_ONE
    by_pld = pld.PLDAccountant(relation)
    by_pld.compose(report.event_for("pld"))
    assert by_pld.get_epsilon(1e-5) == pytest.approx(1.0, rel=1e-3)
    by_rdp = rdp.RdpAccountant(neighboring_relation=relation)
    by_rdp.compose(report.event_for("rdp"))
    assert 1.0 <= by_rdp.get_epsilon(1e-5) <= 1.15
    with pytest.raises(UnsupportedAccounting):
        report.event_for("prv")


def epsilon_of_event(report, which):
    from dp_accounting import NeighboringRelation, pld, rdp

    relation = NeighboringRelation.REPLACE_ONE
    kind = pld.PLDAccountant(relation) if which == "pld" else rdp.RdpAccountant(None, relation)
    return kind.compose(report.event_for(which)).get_epsilon(1e-5)


def mixed():
    selection = {"name": "gumbel_top_k", "purpose": "support", "epsilon": 0.05, "count": 3}
    return make(mechanisms=[row(count=40, planned=50), selection], epsilon=1.0)


def late(delta, share):
    """A session whose second plan was made after the first was released."""
    session = PrivacySession(epsilon=1.0, delta=delta, random_state=0)
    for _ in range(2):
        if delta:
            session.gaussian(BoundedStatistic([1.0], l2=1.0), session.plan_gaussian(1, share=share))
        else:
            session.laplace(BoundedStatistic([1.0], l1=1.0), epsilon=0.99 * share)
    return session.report()


@pytest.mark.parametrize("which", ["pld", "rdp"])
@pytest.mark.parametrize(
    "report",
    [
        make(mechanisms=[row(count=5, planned=50)]),
        make(mechanisms=[row(count=49, planned=50)], plan_mu=make().mu),
        make(mechanisms=[]),
        mixed(),
        late(1e-5, 0.1),
        late(1e-5, 0.5),
        late(0.0, 0.1),
    ],
    ids=["stopped", "one less", "nothing", "two kinds", "late", "late, all spent", "late, pure"],
)
def test_event_is_that_of_the_plan_and_not_of_the_releases(report, which):
    """Unasked questions of a search, and plans made because of what was released, are claimed."""
    found, ideal = epsilon_of_event(report, which), gaussian_epsilon(report.mu, 1e-5)
    assert (1 - 1e-6) * ideal <= found <= 1.2 * ideal
    if report.delta == 1e-5:
        assert ideal >= 0.999 * report.epsilon  # a part is kept for the samplers


def chosen_late():
    """All of the budget is released, half of it by few pure releases that were chosen after a Gaussian one."""
    session = PrivacySession(epsilon=8.0, delta=1e-5, random_state=0)
    session.gaussian(BoundedStatistic([1.0], l2=1.0), session.plan_gaussian(1, share=0.5))
    left = (session._ledger.mu2 - session._ledger.planned_mu2()) * (1 - 1e-12)
    session.laplace(BoundedStatistic([1.0], l1=1.0), epsilon=pure_epsilon(math.sqrt(left)))
    return session.report()


def test_kinds_chosen_late_are_claimed_by_mu_alone():
    """Rows may cost less by their own curves; of curves chosen by what was released nothing is proven."""
    report = chosen_late()
    assert rows_mu(report.mechanisms) == pytest.approx(report.mu, rel=1e-9)
    sharper = 0
    for delta in (1e-12, 1e-9, 1e-7, 1e-5, 1e-3):
        by_mu = gaussian_epsilon(report.mu, Curves(report._state).ideal_delta(delta))
        sharper += rows_epsilon(report.mechanisms, delta) < 0.99 * by_mu
        claim = report.epsilon if delta >= report.delta else math.inf
        assert report.epsilon_at(delta) >= min(by_mu, claim) * (1 - 1e-9)
    for epsilon in (2.0, 6.0):
        assert report.delta_at(epsilon) >= gaussian_delta(report.mu, epsilon) * (1 - 1e-9)
    assert sharper


def test_events_of_rows_that_are_the_plan():
    """Nothing is lost where every planned release was made: rows keep their own, sharper curves."""
    whole = pure()
    assert epsilon_of_event(whole, "rdp") < gaussian_epsilon(whole.mu, 1e-5)
    with pytest.raises(UnsupportedAccounting, match="no safe PLD event"):
        whole.event_for("pld")
    assert make().event_for("rdp").events[0].count == 50


def test_what_was_set_aside_has_no_event_released_or_not():
    session = PrivacySession(epsilon=1.0, delta=1e-5, set_aside=0.5, random_state=0)
    session.gaussian(BoundedStatistic([1.0], l2=1.0), session.plan_gaussian(1))
    with pytest.raises(UnsupportedAccounting, match="no event"):
        session.report().event_for("rdp")


def sampled():
    rate = {"sampling": "Poisson", "sampling_rate": 0.01}
    step = {"name": "gaussian", "purpose": "steps", "noise_multiplier": 1.0, "count": 100, **rate}
    return make(epsilon=1.5, delta=1e-5, adjacency="zero-out", mechanisms=[step])


def test_sampled_rows_without_a_plan_are_the_plan():
    report = sampled()
    assert report.epsilon_at(1e-5) < 1.5
    assert report.epsilon_at(1e-6) > report.epsilon_at(1e-5)
    assert report.epsilon_at(0.0) == math.inf
    assert report.mu == math.inf
    assert "Poisson, rate 0.01" in repr(report)
    delta = report.delta_at(1.0)
    assert report.epsilon_at(delta) <= 1.0 < report.epsilon_at(0.99 * delta)


def sampled_plan(sampling="Poisson", adjacency="replace-one"):
    """100 of 1000 planned steps were made, beside full-batch releases of mu 0.1."""
    sizes = (10_000, 100) if sampling != "Poisson" else ()
    group = [1.0, 0.01, 1000, *sizes]
    mu, delta = 0.1, 1e-5
    z = calibrate_batches(1.0, delta, [group], mu=mu, adjacency=adjacency, sampling=sampling)
    step = {"name": "gaussian", "purpose": "steps", "noise_multiplier": z, "count": 1000}
    step |= {"sampling": sampling, "sampling_rate": 0.01, "batch_size": 100}
    if sizes:
        step["n_records"] = 10_000
    return PrivacyReport(
        epsilon=1.0,
        delta=delta,
        adjacency=adjacency,
        mechanisms=[{**step, "count": 100}],
        sampled_plan=[step],
        plan_mu=mu,
    )


@pytest.mark.parametrize("sampling", ["Poisson", "without replacement"])
def test_a_sampled_plan_is_claimed_and_not_what_was_released(sampling):
    report = sampled_plan(sampling)
    assert report.epsilon_at(1e-5) == 1.0
    at = [report.epsilon_at(delta) for delta in (1e-8, 1e-6, 1e-5, 1e-4, 1e-2)]
    assert np.all(np.diff(at) < 0.0)
    row = report.sampled_plan[0]
    group = [row["noise_multiplier"], 0.01, 1000, 10_000, 100]
    expected = sampled_epsilon([group], 1e-6, mu=0.1, adjacency="replace-one", sampling=sampling)
    assert report.epsilon_at(1e-6) == expected
    released = [[group[0], 0.01, 100, 10_000, 100]]
    assert expected > 1.5 * sampled_epsilon(released, 1e-6, adjacency="replace-one", sampling=sampling)
    assert report.epsilon_at(1e-6) > 1.0
    assert report.delta_at(0.99) > 1e-5 >= report.delta_at(1.0)
    assert report.mu == math.inf


def test_a_sampled_plan_survives_its_forms():
    report = sampled_plan()
    again = PrivacyReport.from_dict(json.loads(json.dumps(report.to_dict())))
    assert again == report
    assert pickle.loads(pickle.dumps(report)) == report
    report.sampled_plan[0]["count"] = 1
    assert report == again
    for text in (repr(report), report._repr_html_()):
        assert "steps: 1000 x multiplier" in text
        assert "Poisson, rate 0.01" in text
    fixed = repr(sampled_plan("without replacement"))
    assert "100 of 10000 without replacement" in fixed
    with pytest.raises(ValueError, match="needs 'noise_multiplier'"):
        PrivacyReport(
            epsilon=1.0,
            delta=1e-5,
            adjacency="replace-one",
            sampled_plan=[{"name": "gaussian", "sampling": "Poisson"}],
        )


def test_events_of_a_sampled_plan():
    import dp_accounting
    from dp_accounting import pld, rdp

    relation = dp_accounting.NeighboringRelation
    by_pld = pld.PLDAccountant(relation.REPLACE_ONE, value_discretization_interval=2e-4)
    by_pld.compose(sampled_plan().event_for("pld"))
    assert by_pld.get_epsilon(1e-5) == pytest.approx(0.997, abs=2.5e-3)
    with pytest.raises(UnsupportedAccounting):
        sampled_plan().event_for("rdp")
    by_rdp = rdp.RdpAccountant(neighboring_relation=relation.REPLACE_ONE)
    by_rdp.compose(sampled_plan("without replacement").event_for("rdp"))
    assert by_rdp.get_epsilon(1e-5) == pytest.approx(0.997, abs=2.5e-3)
    by_rdp = rdp.RdpAccountant(neighboring_relation=relation.REPLACE_SPECIAL)
    by_rdp.compose(sampled_plan(adjacency="zero-out").event_for("rdp"))
    assert 1.0 < by_rdp.get_epsilon(1e-5) < 1.15


# ---------------------------------------------------------------------- pictures


@pytest.fixture
def pyplot():
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    from matplotlib import pyplot

    yield pyplot
    pyplot.close("all")


@pytest.mark.parametrize(
    "report",
    [
        pytest.param(make(), id="dp"),
        pytest.param(pure(), id="pure", marks=pytest.mark.thorough),
        pytest.param(without_guarantee(), id="none"),
        pytest.param(sampled(), id="sampled", marks=pytest.mark.thorough),
        pytest.param(sampled_plan(), id="plan", marks=pytest.mark.thorough),
    ],
)
def test_plot_draws_two_curves(pyplot, report):
    left, right = report.plot()
    assert "type I" in left.get_xlabel()
    assert right.get_xlabel() == "delta"
    left.figure.canvas.draw()
    alpha, beta = left.lines[1].get_data()
    assert np.all(np.diff(beta) <= 1e-12)
    assert np.all(beta <= 1 - np.asarray(alpha) + 1e-12)
    if report.guarantee == "proven":
        assert np.all(np.diff(right.lines[0].get_ydata()) <= 1e-9)
    else:
        assert not right.lines


def test_plot_on_axes_that_are_given(pyplot):
    _, ax = pyplot.subplots()
    assert make().plot(ax) is ax
    assert len(ax.lines) == 2
    _, pair = pyplot.subplots(1, 2)
    assert make().plot(pair) is pair
    _, three = pyplot.subplots(1, 3)
    with pytest.raises(ValueError, match="one or two Axes"):
        make().plot(three)


def test_plot_without_matplotlib_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ImportError, match=r'pip install "skdp\[plot\]"'):
        make().plot()


def test_a_sampled_plan_is_explained_in_words():
    rate = {"sampling": "Poisson", "sampling_rate": 0.01}
    step = {"name": "gaussian", "purpose": "steps", "noise_multiplier": 1.0, **rate}
    scale = {"name": "gaussian", "purpose": "scale", "noise_multiplier": 50.0, "count": 4}
    made = [scale, {**step, "count": 40}, {**step, "count": 20, "noise_multiplier": 2.0}]
    plan = [{**step, "count": 100}, {**step, "count": 20, "noise_multiplier": 2.0}]
    report = make(adjacency="zero-out", mechanisms=made, sampled_plan=plan, plan_mu=0.04)
    text = repr(report)
    assert "100 x multiplier 1, Poisson, rate 0.01 (40 were made, all 100 are charged)" in text
    assert "20 x multiplier 2, Poisson, rate 0.01\n" in text
    assert "each of 120 releases sees every record with probability 0.01" in text
    assert "all other releases, on all records: mu 0.04" in text
    assert "1 to 2" in text  # one line for one purpose
    assert '"a to b": smallest and largest of a row' in text
    assert "share" not in text
    assert report.mechanisms == made


def test_shares_of_a_pure_session_are_those_of_epsilon():
    rows = [{"name": "laplace", "purpose": name, "epsilon": e} for name, e in (("a", 0.9), ("b", 0.1))]
    lines = repr(make(mechanisms=rows, epsilon=1.0, delta=0.0)).splitlines()
    assert [line.split()[-1] for line in lines[-4:-2]] == ["90.0%", "10.0%"]
    assert "noise epsilon" in lines[-5]
    assert "in epsilon" in lines[-1]
    assert "90.0%" not in repr(make(mechanisms=rows, epsilon=1.0, delta=1e-5))


def test_rows_of_one_purpose_are_one_line():
    rows = [{**row(count=2), "sensitivity": size} for size in (0.1, 0.3)]
    text = repr(make(mechanisms=[*rows, {**row(), "purpose": "other"}], epsilon=1.0))
    line = next(line for line in text.splitlines() if line.strip().startswith("gradients"))
    assert line.split() == ["gradients", "26.3795", "4", "0.1", "to", "0.3", "7.4%"]
