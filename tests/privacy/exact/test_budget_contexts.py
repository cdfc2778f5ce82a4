"""Blocks `with accountant:` in threads, tasks, generators: the right ledger is charged, or a fit is refused."""

import asyncio
import contextlib
import copy
import gc
import os
import pickle
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from contextvars import Context, copy_context
from pathlib import Path

import numpy as np
import pytest
import skops.io
from joblib import Parallel, delayed, parallel_config
from sklearn.base import clone
from sklearn.ensemble import BaggingClassifier, VotingClassifier
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer

import skdp
from skdp import DPIGHTClassifier
from skdp.exceptions import PrivacyBudgetExceeded
from skdp.privacy import PrivacySession
from skdp.privacy.budget import BudgetAccountant

HERE = str(Path(__file__).parent)
if HERE not in sys.path:
    sys.path.insert(0, HERE)

import dummy_estimator as dummy  # noqa: E402
from dummy_estimator import current_accountant  # noqa: E402

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 4))
Y = np.arange(60) % 3
WAYS_OUT = r"(?s)accountant=\.\.\..*accountant=False.*copy_context\(\)\.run"


pytestmark = [
    pytest.mark.usefixtures("fresh_workers"),
    # tests/around looks for the warnings of what wraps a fit.
    pytest.mark.filterwarnings("ignore::skdp.exceptions.PrivacyLeakWarning"),
]


@pytest.fixture
def other():
    return BudgetAccountant(100.0, 1e-5)


@pytest.fixture(autouse=True)
def nothing_stays_open():
    yield
    assert current_accountant() is None
    dummy.DummyClassifier().fit(X, Y > 0)


def fits(*accountants):
    return [len(each.ledger()) for each in accountants]


def fit():
    return dummy.DummyClassifier().fit(X, Y > 0)


def in_thread(function, *arguments):
    """In a thread of its own, whose context is empty."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(function, *arguments).result(30)


# Threads


def test_blocks_of_two_threads_charge_their_own_ledgers():
    """Each of five fits of epsilon 1 went to the other thread's ledger, whose ceiling was 1."""
    accountants = [BudgetAccountant(50.0, 0.0), BudgetAccountant(50.0, 0.0)]
    together = threading.Barrier(2, timeout=300)

    def work(mine, name, count):
        with mine:
            together.wait()
            for _ in range(count):
                made = PrivacySession(epsilon=1.0, delta=0.0, estimator=name)
                made._keys.reservation.commit()
            together.wait()

    with ThreadPoolExecutor(2) as pool:
        jobs = [pool.submit(work, accountants[i], f"thread {i}", 3 + i) for i in range(2)]
        [job.result(60) for job in jobs]
    for i, each in enumerate(accountants):
        assert [row["estimator"] for row in each.ledger()] == [f"thread {i}"] * (3 + i)


def test_a_ceiling_of_one_holds_beside_a_block_of_another_thread():
    small, large = BudgetAccountant(1.0, 0.0), BudgetAccountant(100.0, 0.0)
    opened, done = threading.Event(), threading.Event()

    def without_data():
        with large:
            opened.set()
            done.wait(300)

    thread = threading.Thread(target=without_data)
    with small:
        thread.start()
        opened.wait(300)  # the newer block is that of another thread
        granted = 0
        for _ in range(5):
            with contextlib.suppress(PrivacyBudgetExceeded):
                dummy.DummyClassifier(epsilon=1.0, delta=0.0).fit(X, Y > 0)
                granted += 1
        done.set()
        thread.join()
    assert granted == 1
    assert small.spent() == (1.0, 0.0)
    assert large.ledger() == []


READS = {
    "estimator": lambda: dummy.DummyClassifier().fit(object(), None),
    "session": lambda: PrivacySession(epsilon=1.0, delta=1e-6),
    "exact session": lambda: PrivacySession(epsilon=np.inf, delta=0.0),
    "real estimator": lambda: DPIGHTClassifier(classes=(0, 1)).fit([["not"], ["read"]], [0, 1]),
}


@pytest.mark.parametrize("what", READS)
def test_a_fit_in_a_thread_without_a_block_is_refused_while_one_is_open(what, accountant):
    with accountant:
        with pytest.raises(PrivacyBudgetExceeded, match=WAYS_OUT) as caught:
            in_thread(READS[what])
        assert "refused before it read a value" in str(caught.value)
    assert accountant.ledger() == []


def test_the_ways_out_of_a_refusal(accountant, other):
    model = dummy.DummyClassifier()
    with accountant:
        in_thread(copy_context().run, model.fit, X, Y > 0)
        in_thread(dummy.DummyClassifier(accountant=other).fit, X, Y > 0)
        session = in_thread(lambda: PrivacySession(epsilon=1.0, delta=1e-6, accountant=False))
        session.close()
        in_thread(real(accountant=False).fit, X, Y > 0)
        in_thread(PrivacySession.without_privacy)
    assert fits(accountant, other) == [1, 1]
    in_thread(model.fit, X, Y > 0)  # no block is open: free
    assert fits(accountant, other) == [1, 1]


def real(**params):
    settings = {"epsilon": 0.1, "delta": 1e-6, "classes": (0, 1), "max_iter": 1, "clip_norm": 1.0}
    return DPIGHTClassifier(**{**settings, "learning_rate": 1.0, **params})


def test_false_charges_none_inside_a_block(accountant):
    with accountant:
        model = real(accountant=False).fit(X, Y > 0)
        clone(model).fit(X, Y > 0)
        pickle.loads(pickle.dumps(model)).fit(X, Y > 0)
        PrivacySession(epsilon=np.inf, delta=0.0, accountant=False)
        assert accountant.ledger() == []
        model.set_params(accountant=None).fit(X, Y > 0)
    assert fits(accountant) == [1]


@pytest.mark.parametrize("wrong", [True, 0, 1, np.False_, "ledger"])
def test_what_is_no_accountant(wrong):
    with pytest.raises(TypeError, match="must be a BudgetAccountant, None or False"):
        real(accountant=wrong).fit(X, Y > 0)
    with pytest.raises(TypeError, match="must be a BudgetAccountant, None or False"):
        PrivacySession(epsilon=1.0, delta=1e-6, accountant=wrong)


# asyncio


def test_tasks_charge_their_own_ledgers(accountant, other):
    async def work(mine, count):
        with mine:
            for _ in range(count):
                await asyncio.sleep(0)
                fit()
                await asyncio.sleep(0)

    async def both():
        await asyncio.gather(work(accountant, 2), work(other, 3))

    asyncio.run(both())
    assert fits(accountant, other) == [2, 3]


def test_executors_of_asyncio(accountant):
    model = dummy.DummyClassifier()

    async def work():
        loop = asyncio.get_running_loop()
        with accountant:
            await asyncio.to_thread(model.fit, X, Y > 0)  # copies the context
            with pytest.raises(PrivacyBudgetExceeded, match=WAYS_OUT):
                await loop.run_in_executor(None, model.fit, X, Y > 0)
            await loop.run_in_executor(None, copy_context().run, model.fit, X, Y > 0)
            await loop.run_in_executor(None, clone(model).fit, X, Y > 0)

    asyncio.run(work())
    assert fits(accountant) == [3]


def test_a_task_that_outlives_its_block_is_refused(accountant):
    async def later(gate):
        await gate.wait()
        fit()

    async def work():
        gate = asyncio.Event()
        with accountant:
            task = asyncio.create_task(later(gate))
            await asyncio.sleep(0)
        fit()  # the block of this task is over: free
        gate.set()
        with pytest.raises(PrivacyBudgetExceeded, match="has ended"):
            await task

    asyncio.run(work())
    assert accountant.ledger() == []


@pytest.mark.parametrize("end", ["closed", "dropped", "another task"])
def test_asynchronous_generators_end_in_another_context(end, accountant, other):
    async def batches():
        with accountant:
            fit()
            yield 1
            yield 2

    async def work():
        source = batches()
        async for _ in source:
            assert current_accountant() is accountant
            break
        if end == "closed":
            await source.aclose()
        elif end == "another task":
            await asyncio.create_task(source.aclose())
        else:
            del source
            gc.collect()
            await asyncio.sleep(0.01)  # the loop closes it in a task of its own
        assert current_accountant() is None
        fit()
        with other:
            fit()

    asyncio.run(work())
    assert fits(accountant, other) == [1, 1]


# The end of a block


def test_a_block_is_left_in_another_context(accountant, other):
    first, second = Context(), Context()
    first.run(accountant.__enter__)
    assert first.run(current_accountant) is accountant
    assert second.run(current_accountant) is None
    with pytest.raises(PrivacyBudgetExceeded):
        second.run(fit)
    first.run(other.__enter__)
    second.run(accountant.__exit__, None, None, None)
    assert first.run(current_accountant) is other
    first.run(fit)
    second.run(other.__exit__, None, None, None)
    first.run(fit)
    second.run(fit)
    assert fits(accountant, other) == [0, 1]


def test_blocks_of_two_threads_end_in_any_order(accountant, other):
    for order in ((0, 1), (1, 0)):
        contexts = [Context(), Context()]
        for context, each in zip(contexts, (accountant, other)):
            in_thread(context.run, each.__enter__)
        before = fits(accountant, other)
        for i in order:
            contexts[i].run(fit)
            in_thread(contexts[i].run, (accountant, other)[i].__exit__, None, None, None)
        assert fits(accountant, other) == [before[0] + 1, before[1] + 1]


def test_one_handle_twice(accountant):
    """In one context and in another: a block ends once, and the innermost first."""
    with accountant:
        with accountant:
            fit()
        fit()
        inside, done = threading.Event(), threading.Event()

        def without_data():
            with accountant:
                inside.set()
                done.wait(300)
                fit()

        thread = threading.Thread(target=without_data)
        thread.start()
        inside.wait(300)
        fit()
    assert current_accountant() is None
    with pytest.raises(PrivacyBudgetExceeded):  # that of the thread is still open
        fit()
    done.set()
    thread.join()
    fit()
    assert fits(accountant) == [4]


def test_nested_blocks_and_exceptions(accountant, other):
    with pytest.raises(KeyError), accountant:
        with pytest.raises(ValueError, match="inner"), other:
            fit()
            raise ValueError("inner")
        fit()
        raise KeyError
    assert current_accountant() is None
    fit()
    assert fits(accountant, other) == [1, 1]


def test_generators_hold_blocks_across_yields(accountant, other):
    def hold(mine):
        with mine:
            yield fit()
            yield fit()

    # A generator runs in its caller's context: the block is the caller's until the generator ends.
    first, second = hold(accountant), hold(other)
    next(first), next(second)
    fit()
    assert fits(accountant, other) == [1, 2]
    first.close()
    fit()
    assert fits(accountant, other) == [1, 3]
    second.close()
    fit()
    assert fits(accountant, other) == [1, 3]
    third = hold(accountant)
    in_thread(next, third)
    with pytest.raises(PrivacyBudgetExceeded):
        fit()
    third.close()  # in another thread than it began
    fit()


# Stamps


@pytest.mark.slow
@pytest.mark.parametrize("how", ["grid", "scores", "one-vs-rest", "pipeline", "voting", "bare clone"])
def test_joblib_threads_charge_the_block_of_their_caller(how, accountant, other):
    """Of one thread after the other; the callback threads of joblib clone what nobody stamped.

    With both blocks open at once nobody knows for which of them such a clone is made: it is refused.
    """

    def work(mine):
        model = dummy.DummyClassifier()
        with parallel_config("threading"), mine:
            if how == "grid":
                GridSearchCV(model, {"shift": [0.0, 1.0]}, cv=8, n_jobs=2, error_score="raise").fit(X, Y > 0)
            elif how == "scores":
                cross_val_score(model, X, Y > 0, cv=17, n_jobs=2, error_score="raise")
            elif how == "voting":
                many = [(f"m{i}", dummy.DummyClassifier()) for i in range(17)]
                VotingClassifier(many, n_jobs=2).fit(X, Y > 0)
            elif how == "bare clone":
                Parallel(n_jobs=2)(delayed(clone(model).fit)(X, Y > 0) for _ in range(17))
            else:
                many = np.arange(60) % 17
                wrapped = OneVsRestClassifier(model, n_jobs=2)
                wrapped = wrapped if how == "one-vs-rest" else make_pipeline(Normalizer(), wrapped)
                wrapped.fit(X, many)

    for each in (accountant, other):
        in_thread(work, each)
    assert fits(accountant, other) == [17, 17]
    context = Context()
    in_thread(context.run, other.__enter__)
    with contextlib.suppress(PrivacyBudgetExceeded):
        in_thread(work, accountant)
    assert fits(accountant, other)[1] == 17
    context.run(other.__exit__, None, None, None)


def test_a_template_that_two_threads_share_charges_no_wrong_ledger(accountant, other):
    """The worker of one block clones what was cloned in the other block only."""
    template = dummy.DummyClassifier()
    ready, done = threading.Event(), threading.Event()

    def first():
        with accountant:
            clone(template).fit(X, Y > 0)
            ready.set()
            done.wait(60)

    thread = threading.Thread(target=first)
    thread.start()
    ready.wait(60)
    with other, ThreadPoolExecutor(2) as pool:
        jobs = [pool.submit(lambda: clone(template).fit(X, Y > 0)) for _ in range(5)]
        errors = [job.exception() for job in jobs]
    done.set()
    thread.join()
    assert all(isinstance(error, PrivacyBudgetExceeded) for error in errors)
    assert fits(accountant, other) == [1, 0]


@pytest.mark.slow
@pytest.mark.parametrize("later", [False, True])
def test_queues_that_pickle_after_the_block_charge_it_or_refuse(later, accountant, other):
    """Items are handed to a pool inside a block, and pickled by its thread when the block has ended."""
    model = dummy.DummyClassifier()
    load = "import sys, pickle, numpy as np; m = pickle.loads(bytes.fromhex(sys.argv[1]))"
    load += "; m.fit(np.eye(4), np.arange(4) % 2)"
    with accountant:
        pass
    if later:
        with other:
            run = script(load, in_thread(pickle.dumps, model).hex())
        assert run.returncode == 1
        assert "nobody knows which of them pays" in run.stderr
        assert fits(accountant, other) == [0, 0]
    else:
        run = script(load, in_thread(pickle.dumps, model).hex())
        assert (run.returncode, fits(accountant)) == (0, [1])
        pickle.loads(pickle.dumps(model)).fit(X, Y > 0)  # this thread knows that it is outside
        assert fits(accountant) == [1]


@pytest.mark.slow
@pytest.mark.parametrize(("backend", "charged"), [("threading", 0), ("loky", 6)])
def test_bagging_is_charged_or_refused(backend, charged, accountant):
    """Its workers look at `fit` of the estimator that they clone, as one outside of the block might."""
    refused = pytest.raises(PrivacyBudgetExceeded, match=WAYS_OUT)
    model = BaggingClassifier(dummy.DummyClassifier(), n_estimators=6, n_jobs=2)
    with parallel_config(backend), accountant, contextlib.nullcontext() if charged else refused:
        model.fit(X, Y > 0)
    assert fits(accountant) == [charged]


def test_a_real_estimator_in_joblib_threads(accountant):
    with parallel_config("threading"), accountant:
        cross_val_score(real(), X, Y > 0, cv=6, n_jobs=2, error_score="raise")
    assert fits(accountant) == [6]


def test_an_estimator_shared_by_two_blocks_is_refused_where_neither_is_known(accountant, other):
    model = dummy.DummyClassifier()
    with accountant:
        first = clone(model)
        in_thread(clone(model).fit, X, Y > 0)
        in_thread(lambda: clone(model).fit(X, Y > 0))  # used in this block only
        assert fits(accountant) == [2]
        context = Context()
        in_thread(context.run, other.__enter__)
        second = in_thread(context.run, clone, model)
        with pytest.raises(PrivacyBudgetExceeded, match=WAYS_OUT):
            in_thread(lambda: clone(model).fit(X, Y > 0))
        in_thread(first.fit, X, Y > 0)
        in_thread(second.fit, X, Y > 0)
        context.run(other.__exit__, None, None, None)
    assert fits(accountant, other) == [3, 1]


def test_an_estimator_used_outside_and_inside_is_refused_where_neither_is_known(accountant):
    model = dummy.DummyClassifier()
    with accountant:
        clone(model)
        with pytest.raises(PrivacyBudgetExceeded):
            in_thread(lambda: model.fit(X, Y > 0))
        with pytest.raises(PrivacyBudgetExceeded):
            in_thread(lambda: clone(model).fit(X, Y > 0))
    assert accountant.ledger() == []


def test_a_call_of_fit_on_its_class_is_a_use(accountant):
    model = dummy.DummyClassifier()
    fit_of_class = dummy.DummyClassifier.fit
    with accountant:
        fit_of_class(model, X, Y > 0)
        in_thread(lambda: clone(model).fit(X, Y > 0))
        with pytest.raises(PrivacyBudgetExceeded, match=WAYS_OUT):
            in_thread(fit_of_class, model, X, Y > 0)
        with pytest.raises(PrivacyBudgetExceeded, match=WAYS_OUT):
            in_thread(lambda: clone(model).fit(X, Y > 0))  # it is used in no block as well now
    assert fits(accountant) == [2]


def test_a_fit_that_is_assigned_to_a_class_and_put_back_is_noted(accountant, monkeypatch):
    model = dummy.DummyClassifier()
    written = dummy.DummyClassifier.fit
    monkeypatch.setattr(dummy.DummyClassifier, "fit", lambda *given: written(*given))
    with accountant:
        dummy.DummyClassifier()  # from here on
        assert model.fit is not None
        in_thread(lambda: clone(model).fit(X, Y > 0))
        dummy.DummyClassifier.fit = written
        other = dummy.DummyClassifier()
        assert other.fit is not None
        in_thread(lambda: clone(other).fit(X, Y > 0))
    assert fits(accountant) == [2]


def test_a_stamp_counts_while_its_accountant_is_open(accountant, other):
    with accountant:
        stamped = clone(dummy.DummyClassifier())
        copies = [copy.copy(stamped), copy.deepcopy(stamped), pickle.loads(pickle.dumps(stamped))]
        for each in copies:
            in_thread(each.fit, X, Y > 0)
        with other:
            stamped.fit(X, Y > 0)  # the block goes before the stamp
    assert fits(accountant, other) == [3, 1]
    for each in [stamped, clone(stamped), *copies]:
        each.fit(X, Y > 0)
        in_thread(each.fit, X, Y > 0)
        assert "_ambient_accountant" not in each.__getstate__()
    with other, pytest.raises(PrivacyBudgetExceeded):
        in_thread(stamped.fit, X, Y > 0)
    assert fits(accountant, other) == [3, 1]


# Other processes


def in_fork(function):
    """Exit code of a forked child: 0 if it charged or was free, 3 if it was refused."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            function()
            code = 0
        except PrivacyBudgetExceeded:
            code = 3
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def test_forks(accountant, other, monkeypatch):
    monkeypatch.setattr("skdp.privacy.budget.ambient._ENDED", [])  # blocks of other tests
    with accountant:
        assert in_fork(fit) == 0
        assert in_fork(lambda: in_thread(fit)) == 0  # its threads belong to the block as well
        assert in_thread(in_fork, fit) == 0  # the only one that ever was open, as in a pickle
        assert fits(accountant) == [3]
        context = Context()
        in_thread(context.run, other.__enter__)
        assert in_fork(fit) == 0  # this thread's block, not the newer one of another
        assert fits(accountant, other) == [4, 0]
        assert in_thread(in_fork, fit) == 3  # from a thread without a block: which of the two?
        context.run(other.__exit__, None, None, None)
        assert in_thread(in_fork, fit) == 3  # the work may be from the block that has ended
        assert fits(accountant, other) == [4, 0]

        def leaves():
            accountant.__exit__(None, None, None)
            fit()

        assert in_fork(leaves) == 0
        stamped = clone(dummy.DummyClassifier())
    assert in_fork(lambda: stamped.fit(X, Y > 0)) == 0  # not by pickle, and the block is over
    assert in_fork(fit) == 0
    assert fits(accountant, other) == [4, 0]


@pytest.mark.slow
def test_pickles_made_in_threads_without_a_block(accountant, other):
    """As those of the queues of loky and multiprocessing."""
    model = dummy.DummyClassifier()
    load = "import sys, pickle, numpy as np; m = pickle.loads(bytes.fromhex(sys.argv[1]))"
    load += "; m.fit(np.eye(4), np.arange(4) % 2)"
    with accountant:
        run = script(load, in_thread(pickle.dumps, model).hex())
        assert (run.returncode, fits(accountant)) == (0, [1])
        stamped = clone(model)
        context = Context()
        in_thread(context.run, other.__enter__)
        run = script(load, in_thread(pickle.dumps, stamped).hex())
        assert (run.returncode, fits(accountant, other)) == (0, [2, 0])
        unknown = in_thread(pickle.dumps, dummy.DummyClassifier())
        run = script(load, unknown.hex())
        assert run.returncode == 1
        assert "PrivacyBudgetExceeded" in run.stderr
        assert "nobody knows which of them pays" in run.stderr
        context.run(other.__exit__, None, None, None)
    pickle.loads(unknown).fit(X, Y > 0)  # here nothing is open
    assert fits(accountant, other) == [2, 0]


@pytest.mark.slow
def test_skops_files_made_in_a_block(accountant, tmp_path):
    with accountant:
        model = real().fit(X, Y > 0)
        skops.io.dump(model, tmp_path / "model")
        types = skops.io.get_untrusted_types(file=tmp_path / "model")
        back = skops.io.load(tmp_path / "model", trusted=types)
        assert np.array_equal(back.predict(X), model.predict(X))
        in_thread(back.fit, X, Y > 0)
    assert fits(accountant) == [2]
    back.fit(X, Y > 0)
    assert fits(accountant) == [2]
    load = "import sys, skops.io as s, numpy as np; t = s.get_untrusted_types(file=sys.argv[1])"
    load += "; s.load(sys.argv[1], trusted=t).fit(np.eye(4), np.arange(4) % 2)"
    run = script(load, tmp_path / "model")
    assert (run.returncode, fits(accountant)) == (0, [3])


def script(text, *arguments):
    root = str(Path(skdp.__file__).parents[1])
    return subprocess.run(
        [sys.executable, "-c", text, *arguments],
        capture_output=True,
        text=True,
        env=os.environ | {"PYTHONPATH": os.pathsep.join([root, HERE])},
        timeout=300,
    )


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_fork_without_a_block_may_hold_what_an_ended_block_handed_over(accountant, other):
    """The child does not know in which of two blocks its work was given to the thread that forked."""

    def child():
        read, write = os.pipe()
        pid = os.fork()
        if not pid:
            try:
                fit()
                os.write(write, b"fitted")
            except PrivacyBudgetExceeded:
                os.write(write, b"refused")
            finally:
                os._exit(0)
        os.waitpid(pid, 0)
        return os.read(read, 10)

    with accountant:
        pass
    with other:
        assert in_thread(child) == b"refused"
    assert fits(accountant, other) == [0, 0]
