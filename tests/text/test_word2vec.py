"""DPWord2Vec: windows, parameters, errors that spend nothing, and what is done with the vectors."""

import math
import pickle
import re
import warnings

import numpy as np
import pytest
from scipy.stats import binom, norm
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import skdp
from skdp import BudgetAccountant, DPWord2Vec
from skdp.exceptions import PrivacyBudgetExceeded, PrivacyLeakWarning, UtilityWarning
from skdp.nn import SGD, AdaFEST, SparseSelection
from skdp.privacy import PrivateRecords
from skdp.text.sentences import read_sentences, windows_of

pytestmark = pytest.mark.filterwarnings("ignore")

TOPICS = [["sun", "moon", "star"], ["oak", "elm", "ash"]]
WORDS = [word for topic in TOPICS for word in topic]
RNG = np.random.default_rng(0)
SENTENCES = [RNG.choice(TOPICS[i % 2], 8).tolist() for i in range(1200)]
GROUPS = np.arange(1200) // 2


def made(**params):
    settings = {"epsilon": 8.0, "vocabulary": WORDS, "vector_size": 3, "max_iter": 5, "random_state": 0}
    return DPWord2Vec(**{**settings, **params})


# ------------------------------------------------------------------ windows


def slow_windows(sentences, vocabulary, window):
    for number, sentence in enumerate(sentences):
        ids = [vocabulary[word] + 1 for word in sentence if word in vocabulary]
        for place, target in enumerate(ids):
            padded = [0] * window + ids + [0] * window
            context = padded[place : place + window] + padded[place + window + 1 : place + 2 * window + 1]
            if any(context):
                yield number, [target, *context]


@pytest.mark.parametrize("window", [1, 2, 5])
def test_windows_are_those_of_the_sentences(window):
    rng = np.random.default_rng(1)
    sentences = [rng.choice([*"abcdefgh"], rng.integers(0, 9)).tolist() for _ in range(60)]
    vocabulary = {word: row for row, word in enumerate("badce")}
    windows, owners = windows_of(sentences, vocabulary, window)
    wanted = list(slow_windows(sentences, vocabulary, window))
    assert owners.tolist() == [number for number, _ in wanted]
    assert windows.tolist() == [row for _, row in wanted]


def test_no_windows():
    assert windows_of([["a"], []], {"a": 0}, 2)[0].shape == (0, 5)
    assert windows_of([["a", "x", "y"]], {"a": 0}, 2)[0].shape == (0, 5)


# ------------------------------------------------------------------ fits


@pytest.mark.parametrize(
    ("tied", "optimizer"),
    [
        (True, "sgd"),
        (False, "adam"),
        pytest.param(True, "adam", marks=pytest.mark.thorough),
        pytest.param(False, "sgd", marks=pytest.mark.thorough),
    ],
)
def test_without_privacy_it_learns_which_words_go_together(tied, optimizer):
    rate = 0.05 if optimizer == "adam" else "auto"
    model = made(
        epsilon=math.inf, tied=tied, optimizer=optimizer, max_iter=150, vector_size=4, learning_rate=rate,
        unit="record",
    ).fit(SENTENCES)  # fmt: skip
    for topic in TOPICS:
        near = [word for word, _ in model.most_similar(topic[0], topn=2)]
        assert set(near) == set(topic[1:])
    assert model.loss(SENTENCES) < 0.85 * 9 * math.log(2)
    assert (model.output_vectors_ is model.vectors_) or not tied


def test_it_learns_with_privacy_and_a_private_vocabulary():
    """Where the first word's neighbours go wrong with a chance below 1e-6: the cosines are above 0.9."""
    model = made(
        epsilon=20.0, vocabulary="private", max_words_per_group=8, max_iter=60, unit="group",
        negative_weights="released",
    ).fit(SENTENCES, groups=GROUPS)  # fmt: skip
    assert list(model.vocabulary_) == sorted(WORDS)
    assert {word for word, _ in model.most_similar("oak", topn=2)} == {"elm", "ash"}
    assert model.word_counts_.shape == (6,)
    purposes = [row["purpose"] for row in model.privacy_.mechanisms]
    assert purposes == ["vocabulary", "steps"]
    assert model.privacy_.mechanisms[0]["threshold"] > 1
    assert model.privacy_.epsilon <= 20.0
    assert model.privacy_.guarantee == "proven"


def test_the_report_says_what_a_record_is():
    model = made(unit="record", window=3).fit(SENTENCES)
    assert model.privacy_.unit == "window"
    assert "protects    one window" in str(model.privacy_)
    public = model.privacy_.public
    assert public["most_windows_of_a_word"] == 7
    assert public["n_windows"] == len(windows_of(SENTENCES, model.vocabulary_, 3)[0])
    assert (public["n_words"], public["vector_size"], public["n_tables"]) == (6, 3, 2)
    assert not {"n_records", "n_features"} & public.keys()
    grouped = made().fit(SENTENCES, groups=GROUPS)
    assert grouped.privacy_.unit == "group"
    assert "n_windows" not in grouped.privacy_.public
    assert grouped.privacy_.public["n_groups"] == 600


def test_a_seed_repeats_a_fit_and_other_parameters_do_not_share_noise():
    one, two = (made(unit="record").fit(SENTENCES).vectors_ for _ in range(2))
    np.testing.assert_array_equal(one, two)
    assert not np.array_equal(one, made(unit="record", negative=7).fit(SENTENCES).vectors_)
    assert not np.array_equal(one, made(unit="record", random_state=1).fit(SENTENCES).vectors_)


@pytest.mark.thorough
def test_it_learns_where_half_of_the_numbers_are_chosen():
    """The cosines of the two other words of the topic are above .9, and those of the other topic below 0."""
    model = made(epsilon=20.0, gradient_estimator=SparseSelection(0.5), max_iter=40).fit(SENTENCES, groups=GROUPS)
    assert {word for word, _ in model.most_similar("oak", topn=2)} == {"elm", "ash"}
    assert "SparseSelection" in model.privacy_.public["gradient_estimator"]


# ------------------------------------------------------------------ DP-AdaFEST


def moved_words(threshold, sentences=SENTENCES, tied=True, **params):
    """Of each step after the first: which of 60 words change, of which the sentences have the first six."""
    seen = []
    made(
        vocabulary=WORDS + [f"unused{k}" for k in range(54)], gradient_estimator=AdaFEST(threshold),
        optimizer=SGD(momentum=0.0),
        max_iter=12, callback=lambda step, theta: seen.append(theta), tied=tied, negative=1, **params,
    ).fit(sentences, groups=np.arange(len(sentences)))  # fmt: skip
    moves = np.diff(seen, axis=0) != 0
    moves = moves.reshape(len(moves), 1 if tied else 2, 60, 3)
    assert (moves.all(axis=(1, 3)) == moves.any(axis=(1, 3))).all()  # all rows of a word, whole
    return moves.all(axis=(1, 3))


@pytest.mark.parametrize("tied", [True, False])
def test_words_of_no_unit_pass_with_the_probability_of_the_tail(tied):
    """54 words in 11 steps at one standard deviation; false alarm 1e-6."""
    passed = moved_words(1.0, tied=tied)
    trials, p = 11 * 54, norm.sf(1.0)
    assert binom.ppf(5e-7, trials, p) <= passed[:, 6:].sum() <= binom.ppf(1 - 5e-7, trials, p)
    assert passed[:, :6].all()  # each is in hundreds of units


def test_the_first_word_moves_where_none_passes_the_threshold():
    """Whatever the data: here all other words are more frequent."""
    rare = [[word for word in sentence if word != WORDS[0]] for sentence in SENTENCES]
    for sentences in (SENTENCES, rare):
        moved = moved_words(1e6, sentences)
        assert moved[:, 0].all()
        assert not moved[:, 1:].any()


def test_counts_of_a_unit_have_norm_one_however_many_words_it_has(monkeypatch):
    sums, honest = [], PrivateRecords.gradient_sum

    def watched(self, *args, **more):
        found = honest(self, *args, **more)
        sums.append(found._value.plain())
        return found

    monkeypatch.setattr(PrivateRecords, "gradient_sum", watched)

    def counts(words):
        sums.clear()
        made(gradient_estimator=AdaFEST(), window=5, max_iter=1, batch_size=1).fit([words], groups=[0])
        return sums[0]

    # Each of the six windows has all six words, but "unknown" is no word.
    even = counts([*WORDS, "unknown"])
    assert even == pytest.approx(np.full(6, 6**-0.5), rel=1e-3)
    expected = np.zeros(6)
    expected[0] = 1.0
    assert counts(["sun"] * 300) == pytest.approx(expected, abs=1e-3)
    assert np.linalg.norm(counts(RNG.choice(WORDS, 900).tolist())) == pytest.approx(1.0, rel=1e-3)


def test_the_plan_pays_for_counts_and_gradients():
    model = made(gradient_estimator=AdaFEST(), vocabulary="private", batch_size=300)
    model.fit(SENTENCES, groups=GROUPS)
    rows = [row for row in model.privacy_.mechanisms if row["purpose"] == "counts and steps"]
    assert sum(row["count"] for row in rows) == 5
    assert model.privacy_.epsilon <= 8.0
    assert "AdaFEST" in model.privacy_.public["gradient_estimator"]


@pytest.mark.thorough
def test_it_learns_where_many_words_pass():
    model = made(epsilon=20.0, gradient_estimator=AdaFEST(), max_iter=40).fit(SENTENCES, groups=GROUPS)
    assert {word for word, _ in model.most_similar("oak", topn=2)} == {"elm", "ash"}


def test_public_weights_and_the_largest_counts():
    weights = np.arange(1.0, 7.0)
    assert made(unit="record", negative_weights=weights).fit(SENTENCES).vectors_.shape == (6, 3)
    few = made(vocabulary="private", max_words_per_group=8, max_vocabulary_size=2, epsilon=50.0)
    few.fit([[*s, "oak", "sun", "oak", "sun"] for s in SENTENCES], groups=np.arange(1200))
    assert list(few.vocabulary_) == ["oak", "sun"]


def test_groups_that_say_nothing_are_groups():
    sentences, groups = [*SENTENCES, [], ["unknown", "words"]], [*GROUPS, 600, 601]
    model = made(max_iter=3).fit(sentences, groups=groups)
    assert model.privacy_.public["n_groups"] == 602
    empty = made(max_iter=2).fit([[], ["x"], ["oak"]], groups=[0, 1, 2])
    assert np.isfinite(empty.vectors_).all()


def test_add_remove_takes_the_public_number():
    one = made(adjacency="add-remove", n_public=500, unit="record").fit(SENTENCES)
    assert one.privacy_.public["n_public"] == 500
    nothing = made(adjacency="add-remove", n_public=500, unit="record").fit([["x"]])
    assert np.isfinite(nothing.vectors_).all()
    both = made(adjacency="add-remove", n_public=700, vocabulary="private").fit(SENTENCES, groups=GROUPS)
    assert set(both.vocabulary_) <= set(WORDS)


def test_callback_bar_and_accountant():
    steps = []
    accountant = BudgetAccountant(epsilon=10.0, delta=1e-4, allow_seeded=True)
    model = made(callback=lambda t, theta: steps.append((t, theta.size)), accountant=accountant)
    model.fit(SENTENCES, groups=GROUPS)
    assert steps == [(t, 36) for t in range(5)]
    (line,) = accountant.ledger()
    assert line["estimator"].startswith("DPWord2Vec")
    assert line["epsilon"] == 8.0
    with pytest.raises(PrivacyBudgetExceeded):
        model.fit(SENTENCES, groups=GROUPS)


# ------------------------------------------------------------------ errors, and nothing spent

WRONG_DATA = [
    ("a b c", TypeError, "got str"),
    (["a b", "c d"], TypeError, "split it into words"),
    ({"a": 1}, TypeError, "got dict"),
    (iter([["a"]]), TypeError, "an iterator"),
    (3, TypeError, "got int"),
    ([["a", 1]], TypeError, "a word is not a str: convert numbers"),
    ([["a"], None], TypeError, "neither a list nor a tuple"),
    ([[["a"]]], TypeError, "a word is not a str"),
    ([], ValueError, "no sentence at all"),
    ([["x", "y"], ["oak"]], ValueError, "there is no window"),
]


@pytest.mark.parametrize(("data", "kind", "message"), WRONG_DATA)
def test_wrong_data_spend_nothing(data, kind, message):
    accountant = BudgetAccountant(epsilon=10.0, delta=1e-4)
    model = made(unit="record", accountant=accountant, random_state=None)
    with pytest.raises(kind, match=message) as told:
        model.fit(data)
    assert "oak" not in str(told.value)
    assert accountant.spent() == (0.0, 0.0)
    assert not hasattr(model, "vectors_")


WRONG_PARAMETERS = [
    ({"vocabulary": ["a", "b", "a"]}, ValueError, "a word twice"),
    ({"vocabulary": []}, ValueError, "between 1 and"),
    ({"vocabulary": "public"}, ValueError, "a list of words or 'private'"),
    ({"vocabulary": [1, 2]}, TypeError, "a list of words"),
    ({"vocabulary": "private", "unit": "record"}, ValueError, "needs unit='group'"),
    ({"negative_weights": "released"}, ValueError, "needs vocabulary='private'"),
    ({"negative_weights": "counts"}, ValueError, "None, numbers or"),
    ({"negative_weights": [1.0]}, ValueError, "6 numbers"),
    ({"negative_weights": [0.0] * 6}, ValueError, "negative_weights must be finite .* not all 0"),
    ({"negative_weights": [1.0], "vocabulary": "private", "unit": "group"}, ValueError, "need a public"),
    ({"vector_size": 0}, ValueError, "vector_size"),
    ({"window": 1.5}, TypeError, "window"),
    ({"negative": 0}, ValueError, "negative"),
    ({"tied": 1}, TypeError, "tied"),
    ({"optimizer": SGD(momentum=1.0)}, ValueError, "momentum"),
    ({"optimizer": "rmsprop"}, ValueError, "optimizer"),
    ({"n_epochs": 2.0}, ValueError, "not both"),
    ({"clip_norm": 0.0}, ValueError, "clip_norm"),
    ({"clip_norm": 1e9}, ValueError, "clip_norm"),
    ({"vocabulary_share": 1.0}, ValueError, "vocabulary_share"),
    ({"delta": 0.0}, ValueError, "delta=0"),
    ({"gradient_estimator": 0.1}, TypeError, "gradient_estimator must be one of"),
    (
        {"gradient_estimator": SparseSelection(0.1), "vocabulary": "private", "unit": "group"},
        ValueError,
        "SparseSelection needs a public",
    ),
    ({"adjacency": "add-remove"}, ValueError, "n_public"),
]


@pytest.mark.parametrize(("params", "kind", "message"), WRONG_PARAMETERS)
def test_wrong_parameters_are_refused_before_the_data(params, kind, message):
    model = made(**{"unit": "record", **params})
    with pytest.raises(kind, match=message):
        model.fit(None, groups=[0] if model.unit == "group" else None)


def test_groups_go_with_their_unit():
    with pytest.raises(ValueError, match=r"needs groups= in fit: .* of each sentence"):
        made().fit(SENTENCES)
    with pytest.raises(ValueError, match="unit='record' protects single rows"):
        made(unit="record").fit(SENTENCES, groups=GROUPS)
    with pytest.raises(ValueError, match=r"of shape \(n_samples,\)"):
        made().fit(SENTENCES, groups=GROUPS[:-1])


def test_a_vocabulary_of_no_words_is_an_error_that_says_what_was_spent():
    accountant = BudgetAccountant(epsilon=10.0, delta=1e-3)
    model = made(vocabulary="private", accountant=accountant, random_state=None)
    with pytest.raises(ValueError, match=r"no word could be released: .* there are 2\. Nothing"):
        model.fit([["a", "b"], ["c"]], groups=[0, 1])
    assert accountant.spent() == (0, 0)
    with pytest.raises(ValueError, match="stays charged in full"):
        model.fit([[f"w{i}", f"v{i}"] for i in range(600)], groups=range(600))
    assert accountant.spent()[0] == pytest.approx(8.0)


@pytest.mark.parametrize("adjacency", ["zero-out", "replace-one", "add-remove"])
def test_a_vocabulary_is_refused_two_standard_deviations_below_its_threshold(adjacency):
    # The noise is read from the report of a fit that spends: it has another sensitivity under each adjacency.
    size = 400
    params = {"vocabulary": "private", "adjacency": adjacency, "epsilon": 1.0, "vector_size": 1}
    public = {"n_public": size} if adjacency == "add-remove" else {}
    model = made(**params, **public).fit([["a", "b"]] * size, groups=range(size))
    row = next(row for row in model.privacy_.mechanisms if row["purpose"] == "vocabulary")
    limit = row["threshold"] - 2 * row["noise_std"]
    for n_units, refused in ((math.floor(limit), True), (math.ceil(limit), False)):
        public = {"n_public": n_units} if adjacency == "add-remove" else {}
        accountant = BudgetAccountant(epsilon=1.0, delta=1e-3)
        # No group has a word, so that an accepted fit releases none.
        with pytest.raises(ValueError, match="could be released" if refused else "in enough groups"):
            made(**params, **public, accountant=accountant, random_state=None).fit(
                [[]] * n_units, groups=range(n_units)
            )
        assert (accountant.spent()[0] == 0) is refused


def test_a_table_too_large_for_the_smallest_vocabulary_warns_before_anything_is_spent():
    accountant = BudgetAccountant(epsilon=10.0, delta=1e-3)
    model = made(vocabulary="private", epsilon=4.0, vector_size=100, accountant=accountant, random_state=None)
    sentences = [["a", "b"]] * 400
    with warnings.catch_warnings():
        warnings.simplefilter("error", UtilityWarning)
        with pytest.raises(UtilityWarning, match="even a table of 2 words and 400 numbers"):
            model.fit(sentences, groups=range(400))
    assert accountant.spent() == (0, 0)
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        model.fit(sentences, groups=range(400))
    assert ["a table of" in str(each.message) for each in seen].count(True) == 1


def test_windows_are_called_windows_and_counted_only_if_their_number_is_public():
    with pytest.warns(UtilityWarning, match=r"^\d+ windows at epsilon"):
        model = made(unit="record", epsilon=0.1, vector_size=50).fit(SENTENCES)
    assert model.privacy_.public["n_windows"] > 0
    for sentences in (SENTENCES, [["x"]]):
        model = made(unit="record", n_public=100).fit(sentences)
        assert "n_windows" not in model.privacy_.public


@pytest.mark.parametrize("weights", [[1, "x"], [1, None], [1, 1j], [1, float("nan")], [0, 0]])
def test_negative_weights_that_are_no_weights_are_named(weights):
    with pytest.raises(ValueError, match=r"^negative_weights must be finite numbers >= 0"):
        made(vocabulary=["a", "b"], negative_weights=weights).fit(SENTENCES, groups=GROUPS)


def test_a_series_of_sentences_may_have_any_labels():
    pd = pytest.importorskip("pandas")
    series = pd.Series([["a", "b"], ["c"]], index=["columns", "x"])
    assert read_sentences(series) == [["a", "b"], ["c"]]
    with pytest.raises(TypeError, match="got a table"):
        read_sentences(pd.DataFrame({"words": series}))


def test_a_word_that_utf8_cannot_hold_leaves_an_older_file_alone(tmp_path):
    path = tmp_path / "vectors.txt"
    path.write_text("older", encoding="utf-8")
    model = made(vocabulary=["a", "b\ud800"]).fit(SENTENCES, groups=GROUPS)
    with pytest.raises(ValueError, match="surrogates"):
        model.save_word2vec_format(path)
    assert path.read_text(encoding="utf-8") == "older"


def test_a_threshold_above_the_number_of_documents_warns_before_anything_is_spent():
    accountant = BudgetAccountant(1.0, 1e-5)
    model = made(
        vocabulary="private", epsilon=1.0, random_state=None, accountant=accountant, max_words_per_group=200
    )  # fmt: skip
    with warnings.catch_warnings():
        warnings.filterwarnings("error", message="a word is released if")
        with pytest.raises(UtilityWarning, match=r"k = max_words_per_group = 200 .* smaller max_words_per_group"):
            model.fit(SENTENCES[:60], groups=range(60))
    assert accountant.spent() == (0, 0)


@pytest.mark.parametrize(
    ("select", "part"),
    [
        (AdaFEST(1e6), "only where about .* windows of a batch have it"),
        (AdaFEST(-1.0), None),
        (SparseSelection(0.2, score_clip=1e-6), "changes 7 of 36 numbers of the table in a step, and the noise"),
        (SparseSelection(0.5, "uniform"), "changes 18 of 36 numbers of the table in a step"),
        ("mean", None),
    ],
)
def test_selection_that_noise_decides_warns(select, part):
    model = made(epsilon=0.5, unit="record", gradient_estimator=select, batch_size=20, random_state=None)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(SENTENCES)
    told = [str(w.message) for w in caught if "gradient_estimator=" in str(w.message)]
    assert len(told) == (part is not None)
    assert all(re.search(part, text) for text in told)


def test_the_released_size_of_a_private_vocabulary_warns():
    model = made(vocabulary="private", epsilon=20.0, max_words_per_group=6, vector_size=2000)
    with pytest.warns(UtilityWarning, match="few for a table of 6 words and 24000 numbers"):
        model.fit(SENTENCES, groups=GROUPS)


def test_windows_and_records_do_not_share_a_ledger():
    accountant = BudgetAccountant(epsilon=10.0, delta=1e-3)
    X, y = RNG.normal(size=(200, 3)), np.arange(200) % 2
    fit = {"epsilon": 1.0, "accountant": accountant}
    skdp.DPMLPClassifier(classes=(0, 1), max_iter=2, **fit).fit(X, y)
    left = accountant.remaining()
    with pytest.raises(PrivacyBudgetExceeded, match=r"unit='window'.*do not add up"):
        made(unit="record", random_state=None, **fit).fit(SENTENCES)
    assert accountant.remaining() == left


def test_tables_of_sentences_are_refused():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"words": SENTENCES[:4]})
    with pytest.raises(TypeError, match=r"got a table: give the column .* X\['words'\]"):
        made(unit="record").fit(frame)
    assert made(unit="record").fit(frame["words"]).vectors_.shape == (6, 3)


def test_few_documents_and_seeds_warn():
    with pytest.warns(UtilityWarning, match="few for a table of 6 words and 1200 numbers"):
        made(vector_size=100, epsilon=0.1).fit(SENTENCES, groups=GROUPS)
    with pytest.warns(PrivacyLeakWarning, match="random_state"):
        made().fit(SENTENCES, groups=GROUPS)


# ------------------------------------------------------------------ what is done with the vectors


def test_cosines_are_sorted_and_leave_the_word_out():
    model = made(unit="record").fit(SENTENCES)
    found = model.most_similar("oak", topn=99)
    vectors = model.vectors_ / np.linalg.norm(model.vectors_, axis=1)[:, None]
    wanted = vectors @ vectors[model.vocabulary_["oak"]]
    assert len(found) == 5
    assert [c for _, c in found] == sorted((c for _, c in found), reverse=True)
    for word, cosine in found:
        assert word != "oak"
        assert cosine == pytest.approx(wanted[model.vocabulary_[word]], abs=1e-5)
    with pytest.raises(TypeError, match="word must be a str, got list"):
        model.most_similar(["oak", "elm"])
    with pytest.raises(KeyError, match="'unknown' is not among the 6 words"):
        model.most_similar("unknown")
    with pytest.raises(ValueError, match="topn"):
        model.most_similar("oak", topn=0)
    assert math.isnan(model.loss([["unknown"]]))
    with pytest.raises(NotFittedError):
        made().most_similar("oak")


def test_the_file_is_word2vecs_text_format(tmp_path):
    model = made(unit="record").fit(SENTENCES)
    model.save_word2vec_format(tmp_path / "vectors.txt")
    first, *lines = (tmp_path / "vectors.txt").read_text(encoding="utf-8").splitlines()
    assert first == "6 3"
    read = {line.split()[0]: np.array(line.split()[1:], dtype=np.float32) for line in lines}
    assert list(read) == WORDS
    for word, vector in read.items():
        np.testing.assert_array_equal(vector, model.vectors_[model.vocabulary_[word]])
    spaced = made(unit="record", vocabulary=["sun", "moon", "two words"]).fit(SENTENCES)
    with pytest.raises(ValueError, match="white space: fit with another form"):
        spaced.save_word2vec_format(tmp_path / "other.txt")


def test_it_is_an_estimator_that_can_be_cloned_and_stored():
    model = made(unit="record")
    assert set(vars(clone(model))) == set(model.get_params())
    fitted = pickle.loads(pickle.dumps(model.fit(SENTENCES)))
    np.testing.assert_array_equal(fitted.vectors_, model.vectors_)
    assert "DPWord2Vec" not in dict(skdp.all_estimators())  # these take tables
    assert not model.__sklearn_tags__().input_tags.two_d_array
    attributes = {name for name in vars(model) if name.endswith("_") and not name.startswith("_")}
    section = DPWord2Vec.__doc__.split("Attributes\n")[1].split("See Also")[0]
    listed = {line.split(" : ")[0].strip() for line in section.split("\n") if line[:5].strip() and " : " in line}
    assert attributes == listed
