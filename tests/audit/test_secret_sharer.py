"""What the secret sharer measures: on scores that know all or nothing, in small cases, and on word vectors."""

import itertools
import json
import math
import re

import numpy as np
import pytest
from scipy.special import logsumexp
from scipy.stats import chi2

from skdp.audit import SecretSharerDisplay, cbow_log_perplexity, secret_sharer
from skdp.audit.canaries import draw_phrases, draw_phrases_outside, draw_rivals, insert_phrases, phrase_codes
from skdp.audit.ranks import chi_squared, exposures, lowest_epsilon, rank_phrases

WORDS = [f"w{k}" for k in range(60)]
TEXT = [[WORDS[k] for k in row] for row in np.random.default_rng(0).integers(0, 60, (300, 7)).tolist()]
FALSE_ALARM = 1e-6
SMALL = dict(vocabulary=WORDS, n_canaries=100, n_references=499, random_state=0)


def rng(seed=0):
    return np.random.RandomState(seed)


def hash_noise(phrases, salt=0):
    """A number in [0, 1) that depends on the phrase alone and has no order."""
    mixed = phrases.astype(np.uint64) @ np.array([73856093, 19349663, 83492791], dtype=np.uint64)
    for _ in range(3):
        mixed = (mixed ^ (mixed >> np.uint64(31)) ^ np.uint64(salt)) * np.uint64(0xBF58476D1CE4E5B9)
    return (mixed >> np.uint64(11)) / 2.0**53


class Memory:
    """A made-up model that knows how often each phrase of its text occurs."""

    def __init__(self, sentences):
        self.sentences = sentences
        positions = {word: k for k, word in enumerate(WORDS)}
        self.counts = {}
        for sentence in sentences:
            for a, b, c in zip(sentence, sentence[1:], sentence[2:]):
                code = (positions[a] * 60 + positions[b]) * 60 + positions[c]
                self.counts[code] = self.counts.get(code, 0) + 1

    def score(self, phrases):
        table = np.zeros(60**3)
        table[list(self.counts)] = list(self.counts.values())
        return hash_noise(phrases) - table[(phrases[:, 0] * 60 + phrases[:, 1]) * 60 + phrases[:, 2]]


@pytest.fixture(scope="module")
def memorised():
    models = []

    def fit(sentences):
        models.append(Memory(sentences))
        return models[-1]

    display = secret_sharer(fit, TEXT, score=Memory.score, n_insertions=(3, 9), **SMALL)
    return display, models


def test_a_memorising_model_has_high_ranks(memorised):
    display, _ = memorised
    for n in (3, 9):
        # Some random phrases are the canary itself: they tie with it, and no other phrase comes near.
        assert display.ranks[n].min() > 495
        assert display.chi_squared(n) == (9.0, pytest.approx(0.0, abs=1e-100))
        assert np.median(display.exposures(n)) == pytest.approx(math.log2(500))
        assert display.epsilon_lower_bound(n) > 5.0 / n
        assert display.chi_squared(n, outside=True)[1] > FALSE_ALARM


def test_a_model_that_knows_nothing_has_uniform_ranks():
    """False alarm: the p-value of the chi-squared test, an approximation at 200 expected ranks a bin."""
    display = secret_sharer(
        len, TEXT, score=lambda model, phrases: hash_noise(phrases, model), n_insertions=15,
        vocabulary=WORDS, n_canaries=2000, n_references=300, random_state=1,
    )  # fmt: skip
    for outside in (False, True):
        distance, p_value = display.chi_squared(15, outside=outside)
        assert p_value > FALSE_ALARM
        assert distance < chi2.isf(FALSE_ALARM, 9) / 2000
    assert display.exposures(15).mean() == pytest.approx(1 / math.log(2), abs=0.2)  # 1.44 / sqrt(2000) = .03
    assert display.epsilon_lower_bound(15, confidence=1 - FALSE_ALARM) == 0.0


def test_the_direction_is_that_of_the_second_version():
    """Scores turned round, as by version 1's formula, make the same canaries the least likely phrases."""
    phrases = np.array([[0, 1, 2]] * 20)

    def score(rows):
        return np.where((rows == [0, 1, 2]).all(axis=1), -1.0, 0.0)

    assert rank_phrases(score, phrases, 1000, 50, rng()).tolist() == [50] * 20
    turned = rank_phrases(lambda rows: -score(rows), phrases, 1000, 50, rng())
    assert turned.tolist() == [0] * 20


def test_ties_count_at_random():
    """All phrases alike: ranks are uniform, where a count of all ties, or of none, gives one bin."""
    phrases = draw_phrases(60, 3000, rng())
    ranks = rank_phrases(lambda rows: np.zeros(len(rows)), phrases, 60, 99, rng(1))
    assert (ranks.min(), ranks.max()) == (0, 99)
    assert chi_squared(ranks, 99, 10)[1] > FALSE_ALARM
    for mutant in (np.zeros(3000, dtype=int), np.full(3000, 99), np.full(3000, 49)):
        assert chi_squared(mutant, 99, 10)[0] == pytest.approx(9.0)


def test_few_values_are_ranked_without_bias():
    """Scores of two values only, and infinite ones: half the phrases tie."""
    phrases = draw_phrases(60, 3000, rng(2))
    ranks = rank_phrases(lambda rows: np.where(hash_noise(rows) < 0.3, np.inf, 1.0), phrases, 60, 99, rng(3))
    assert chi_squared(ranks, 99, 10)[1] > FALSE_ALARM


def test_ranks_by_hand(monkeypatch):
    """The rank counts the random phrases of a larger log-perplexity, also where phrases come in blocks."""
    monkeypatch.setattr("skdp.audit.ranks._BLOCK", 12_100)
    phrases = draw_phrases(40, 30, rng())
    asked = []

    def score(rows):
        asked.append(rows)
        return hash_noise(rows, 5)

    ranks = rank_phrases(score, phrases, 40, 2000, rng(4))
    rivals = np.vstack(asked).reshape(30, 2001, 3)
    assert len(asked) == 5
    assert np.array_equal(rivals[:, 0], phrases)
    assert (rivals[:, :, 0] == phrases[:, :1]).all()
    assert (rivals[:, :, 1] != rivals[:, :, 2]).all()
    values = hash_noise(rivals.reshape(-1, 3), 5).reshape(30, -1)
    same = (values == values[:, :1]).sum(axis=1) - 1
    above = (values > values[:, :1]).sum(axis=1)
    assert ((above <= ranks) & (ranks <= above + same)).all()


def test_phrases_are_uniform_and_their_last_words_differ():
    """All 4 * 4 * 3 phrases are equally likely; false alarm of the chi-squared test: 1e-6."""
    for drawn in (draw_phrases(4, 48_000, rng()), draw_rivals(np.zeros((1, 3), int), 4, 48_000, rng())[0, 1:]):
        codes, counts = np.unique((drawn[:, 0] * 4 + drawn[:, 1]) * 4 + drawn[:, 2], return_counts=True)
        cells = len(set(drawn[:, 0])) * 12
        assert len(codes) == cells
        assert chi2.sf(np.sum((counts - 48_000 / cells) ** 2) * cells / 48_000, cells - 1) > FALSE_ALARM
        assert (drawn[:, 1] != drawn[:, 2]).all()


def occurrences(sentences, phrase):
    return sum(
        list(window) == phrase for sentence in sentences for window in zip(sentence, sentence[1:], sentence[2:])
    )


@pytest.mark.parametrize("as_sentences", [False, True])
def test_each_phrase_is_inserted_so_many_times_and_the_text_stays(as_sentences):
    text = [["a", "b"], [], ["c"], ["d", "e", "f"]]
    phrases = [[f"x{k}", f"y{k}", f"z{k}"] for k in range(5)]
    before = [list(sentence) for sentence in text]
    found = insert_phrases(text, phrases, 7, as_sentences, rng())
    assert text == before
    assert [occurrences(found, phrase) for phrase in phrases] == [7] * 5
    own = [[word for word in sentence if word in "abcdef"] for sentence in found]
    if as_sentences:
        assert [s for s in found if s not in phrases] == text
        assert len(found) == 4 + 35
    else:
        assert own == text


@pytest.mark.parametrize("as_sentences", [False, True])
def test_every_place_is_equally_likely(as_sentences):
    """One phrase in a text with 3 + 1 + 2 places, or 4 between sentences; false alarm: 1e-6."""
    text, source, counts = [["a", "b"], [], ["c"]], rng(5), {}
    for _ in range(3000):
        found = insert_phrases(text, [["x", "y", "z"]], 1, as_sentences, source)
        counts[str(found)] = counts.get(str(found), 0) + 1
    cells = 4 if as_sentences else 6
    assert len(counts) == cells
    statistic = sum((n - 3000 / cells) ** 2 for n in counts.values()) * cells / 3000
    assert chi2.sf(statistic, cells - 1) > FALSE_ALARM


def test_the_models_read_the_text_with_the_canaries(memorised):
    display, models = memorised
    canaries = draw_phrases(60, 100, rng(0))
    for n, model in zip((3, 9), models):
        codes = (canaries[:, 0] * 60 + canaries[:, 1]) * 60 + canaries[:, 2]
        assert all(model.counts[code] >= n for code in codes.tolist())
        assert sum(map(len, model.sentences)) == 300 * 7 + 3 * 100 * n
        assert len(model.sentences) == 300
    assert sum(map(len, TEXT)) == 300 * 7


def test_phrases_outside_are_not_in_the_text():
    positions = {word: k for k, word in enumerate("abcd")}
    text = [["a", "b", "c", "d"], ["a", "?", "b", "c"], ["d"], ["a"], ["c", "b"]]
    known = phrase_codes(text, positions)
    assert known.tolist() == [0 * 16 + 1 * 4 + 2, 1 * 16 + 2 * 4 + 3]
    drawn = draw_phrases_outside(4, 2000, known, rng())
    assert len(drawn) == 2000
    assert len({tuple(row) for row in drawn.tolist()}) == 46
    assert phrase_codes([[], ["a"]], positions).tolist() == []
    every = [list(phrase) for phrase in itertools.product("abcd", repeat=3)]
    with pytest.raises(ValueError, match="nearly all phrases of three of the 4 words"):
        draw_phrases_outside(4, 10, phrase_codes(every, positions), rng())


def test_figures_by_hand():
    ranks = np.array([0, 3, 3, 9])
    assert exposures(np.array([9, 8, 6, 2, 0]), 9).tolist() == pytest.approx(
        [math.log2(10), math.log2(5), math.log2(2.5), math.log2(1.25), 0.0]
    )
    # Two bins of 5 ranks: 3 and 1, where 2 and 2 are expected.
    assert chi_squared(ranks, 9, 2) == pytest.approx((0.25, chi2.sf(1.0, 1)))
    # Three bins of 10 ranks hold 4, 3 and 3 of them.
    expected = np.array([4, 3, 3]) * 0.4
    statistic = np.sum((np.array([3, 0, 1]) - expected) ** 2 / expected)
    assert chi_squared(ranks, 9, 3)[0] == pytest.approx(statistic / 4)
    # Twenty of twenty in the top half: p >= .05^(1/20), and the odds of a half are 1.
    lowest = 0.05 ** (1 / 20)
    assert lowest_epsilon(np.array([5, 6, 9, 8] * 5), 9, 0.5, 0.95) == pytest.approx(
        math.log(lowest / (1 - lowest))
    )
    assert lowest_epsilon(np.array([4, 4, 4, 0]), 9, 0.5, 0.95) == 0.0


def test_published_p_values_are_those_of_ten_bins_and_a_thousand_canaries():
    """Table 2: distances are rounded to .001, so a statistic is known to half a unit."""
    for distance, p_value in ((7, 0.63), (4, 0.88), (11, 0.31), (5, 0.85), (7, 0.68), (10, 0.33), (2, 0.98)):
        assert chi2.sf(distance + 0.5, 9) - 0.005 <= p_value <= chi2.sf(distance - 0.5, 9) + 0.005


def test_the_lower_bound_of_epsilon_holds_for_randomized_response():
    """Each canary's place is told by a mechanism that is exactly epsilon-DP; false alarm: 1e-6 a setting.

    It tells the canary with odds exp(epsilon) against each other candidate. So the claim is reached, and the
    bound must be below it and near.
    """
    for epsilon in (0.5, 3.0):
        n_references, n_canaries = 99, 400_000
        source = np.random.default_rng(7)
        told = np.exp(epsilon) / (np.exp(epsilon) + n_references)
        honest = source.random(n_canaries) < told
        # The candidate that is told ranks highest, the others come in random order.
        ranks = np.where(honest, n_references, source.integers(0, n_references, n_canaries))
        found = lowest_epsilon(ranks, n_references, 0.01, 1 - FALSE_ALARM)
        assert 0.6 * epsilon < found <= epsilon
        display = SecretSharerDisplay({5: ranks}, {5: ranks}, n_references=n_references)
        one = display.epsilon_lower_bound(5, top=0.01, confidence=1 - FALSE_ALARM)
        assert one == pytest.approx(found / 5)
        two = display.epsilon_lower_bound(
            5, units_per_insertion=3, adjacency="zero-out", top=0.01, confidence=1 - FALSE_ALARM
        )
        assert two == pytest.approx(found / 30)


# ---------------------------------------------------------------------- word vectors


def direct(vectors, targets, phrases):
    """The definition, a phrase at a time."""
    found = []
    for first, second, third in phrases:
        one = targets @ vectors[first]
        two = targets @ ((vectors[first] + vectors[second]) / 2)
        found.append(logsumexp(one) - one[second] + logsumexp(two) - two[third])
    return np.array(found)


@pytest.mark.parametrize("scale", [0.1, 3.0, 60.0])
@pytest.mark.parametrize("cells", [2**22, 5 * 40])
def test_log_perplexity_is_its_definition(scale, cells, monkeypatch):
    """Also in blocks of words, and where sums of products would be lost to underflow."""
    monkeypatch.setattr("skdp.audit.cbow._CELLS", cells)
    source = np.random.default_rng(0)
    vectors, other = source.normal(0, scale, (2, 40, 8))
    phrases = source.integers(0, 40, (100, 3))
    for targets in (None, other):
        found = cbow_log_perplexity(vectors, phrases, output_vectors=targets)
        expected = direct(vectors, vectors if targets is None else targets, phrases)
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9 * scale**2)
    assert cbow_log_perplexity(vectors, phrases[:0]).shape == (0,)


def test_probabilities_sum_to_one():
    vectors = np.random.default_rng(1).normal(size=(6, 3))
    pairs = np.array(list(itertools.product(range(6), repeat=2)))
    phrases = np.hstack([np.full((36, 1), 4), pairs])
    assert np.exp(-cbow_log_perplexity(vectors, phrases)).sum() == pytest.approx(1.0)


class Vectors:
    """A non-private CBOW model with one table and negative sampling, in a few lines."""

    def __init__(self, sentences, n_epochs=10, rate=0.4, window=2, n_negative=5):
        source = np.random.default_rng(0)
        self.vocabulary_ = WORDS
        place = {word: k for k, word in enumerate(WORDS)}
        ids = [[place[word] for word in sentence] for sentence in sentences]
        records = [
            (row[k], [*row[max(0, k - window) : k], *row[k + 1 : k + 1 + window]])
            for row in ids for k in range(len(row)) if len(row) > 1
        ]  # fmt: skip
        targets = np.array([target for target, _ in records])
        context = np.zeros((len(records), len(WORDS)), dtype=np.float32)
        for k, (_, around) in enumerate(records):
            np.add.at(context[k], around, 1.0 / len(around))
        self.vectors_ = table = source.normal(0, 0.1, (len(WORDS), 24)).astype(np.float32)
        sign = np.r_[1.0, np.zeros(n_negative)].astype(np.float32)
        for _ in range(n_epochs):
            for part in np.array_split(source.permutation(len(records)), len(records) // 50):
                words = np.hstack([targets[part, None], source.integers(0, 60, (len(part), n_negative))])
                mean = context[part] @ table
                slopes = 1 / (1 + np.exp(-np.einsum("ijk,ik->ij", table[words], mean))) - sign
                step = context[part].T @ np.einsum("ij,ijk->ik", slopes, table[words])
                np.add.at(step, words.ravel(), (slopes[..., None] * mean[:, None]).reshape(-1, 24))
                table -= rate / 10 * step


def test_word_vectors_memorise_canaries():
    """The default score, of a model that learns sentences of three words which occur fifteen times."""
    display = secret_sharer(
        Vectors, TEXT[:100], n_insertions=15, n_references=999, as_sentences=True, vocabulary=WORDS, n_canaries=40,
        random_state=3,
    )  # fmt: skip
    distance, p_value = display.chi_squared(15)
    assert distance > 2
    assert p_value < FALSE_ALARM
    assert display.chi_squared(15, outside=True)[1] > FALSE_ALARM
    assert np.median(display.exposures(15)) > 4
    assert np.median(display.exposures(15, outside=True)) < 3


def test_the_default_score_reads_the_models_words():
    """A model that has its words in another order, more words, a dict of places, or two tables."""
    vectors, targets = np.random.default_rng(0).normal(size=(2, 62, 4))
    order = np.random.default_rng(1).permutation(62)
    words = [*WORDS, "more", "yet more"]

    def model(**attributes):
        return lambda sentences: type("Model", (), attributes)()

    shuffled = [words[k] for k in order]
    for extra in ({}, {"output_vectors_": targets}):
        moved = {key: table[order] for key, table in extra.items()}
        plain = model(vectors_=vectors, vocabulary_=words, **extra)
        first = secret_sharer(plain, TEXT, n_insertions=3, **SMALL).ranks[3]
        for known in (shuffled, np.array(shuffled), {word: k for k, word in enumerate(shuffled)}):
            other = model(vectors_=vectors[order], vocabulary_=known, **moved)
            found = secret_sharer(other, TEXT, n_insertions=3, **SMALL).ranks[3]
            assert np.array_equal(found, first)
    with pytest.raises(ValueError, match=r"does not know 1 of the 60 words .* such as 'w0'; give vocabulary="):
        secret_sharer(model(vectors_=vectors, vocabulary_=words[1:]), TEXT, n_insertions=3, **SMALL)
    with pytest.raises(TypeError, match="Model, which has no vectors_"):
        secret_sharer(model(), TEXT, **SMALL)


# ---------------------------------------------------------------------- what is returned, and bad input


def test_every_sentence_says_that_it_is_no_proof(memorised):
    display, _ = memorised
    told = display.as_dict()
    assert json.loads(json.dumps(told)) == told
    assert "no proof" in told["note"]
    assert [row["n_insertions"] for row in told["insertions"]] == [3, 9]
    assert told["insertions"][1]["chi_squared_distance"] == display.chi_squared(9)[0]
    sentences = re.split(r"(?<=\.)\s", repr(display))
    assert len(sentences) == 6
    for sentence in sentences:
        assert re.search("no proof", sentence), sentence


def test_histograms(memorised):
    plt = pytest.importorskip("matplotlib.pyplot")
    display, _ = memorised
    assert display.plot() is display
    assert display.axes_.shape == (2, 1)
    assert "no proof" in display.figure_.get_suptitle()
    heights = [bar.get_height() for bar in display.axes_[0, 0].patches]
    assert heights == [0] * 9 + [100]
    _, own = plt.subplots(2)
    assert display.plot(own).axes_[1, 0] is own[1]
    axes = SecretSharerDisplay.plot_many({"first": display, "second": display, "third": display})
    assert axes.shape == (2, 4)
    counts = np.array([bar.get_height() for bar in axes[1, 3].patches])
    assert counts.sum() == 100
    assert counts.max() < 40
    with pytest.raises(ValueError, match="ax must be 2 Axes, got 1"):
        display.plot(own[0])
    with pytest.raises(ValueError, match="same numbers of insertions"):
        SecretSharerDisplay.plot_many({})
    plt.close("all")


def test_the_seed_repeats_all():
    def score(model, phrases):
        return hash_noise(phrases)

    first, second = (secret_sharer(len, TEXT, score=score, n_insertions=[2], **SMALL) for _ in range(2))
    assert np.array_equal(first.ranks[2], second.ranks[2])
    other = secret_sharer(len, TEXT, score=score, n_insertions=2, **{**SMALL, "random_state": rng(9)})
    assert not np.array_equal(first.ranks[2], other.ranks[2])


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        ({"sentences": "a b c"}, TypeError, "sentences must be a list of lists of words, got str"),
        ({"sentences": ["a b c"]}, TypeError, "split each sentence"),
        ({"sentences": [["a", 3]]}, TypeError, "which are str"),
        ({"sentences": []}, ValueError, "sentences must not be empty"),
        ({"vocabulary": "abc"}, TypeError, "vocabulary must be a list of words"),
        ({"vocabulary": ["a", "b", "a"]}, ValueError, "a word twice"),
        ({"vocabulary": ["a", "b"]}, ValueError, "3 to 2097151 words, got 2"),
        ({"sentences": [["a", "b"]], "vocabulary": None}, ValueError, "words, got 2"),
        ({"n_insertions": 0}, ValueError, "n_insertions must be >= 1"),
        ({"n_insertions": (3, 3)}, ValueError, "different numbers"),
        ({"n_insertions": ()}, ValueError, "different numbers"),
        ({"n_insertions": 1.5}, TypeError, "n_insertions must be an int"),
        ({"n_canaries": 0}, ValueError, "n_canaries must be >= 1"),
        ({"n_references": 5}, ValueError, "n_references must be >= 9"),
        ({"as_sentences": "yes"}, TypeError, "as_sentences must be True or False"),
        ({"fit": None}, TypeError, "must be callables"),
        ({"score": "cbow"}, TypeError, "must be callables"),
    ],
)
def test_bad_input_stops_before_a_training(given, error, message):
    def fit(sentences):
        raise AssertionError("a training was started")

    with pytest.raises(error, match=message):
        secret_sharer(**{"fit": fit, "sentences": TEXT, **SMALL, **given})


@pytest.mark.parametrize(
    ("score", "message"),
    [
        (lambda model, phrases: np.full(len(phrases), np.nan), "got NaN"),
        (lambda model, phrases: np.zeros((len(phrases), 2)), "one log-perplexity for each of the 50000 phrases"),
    ],
)
def test_bad_scores_are_refused(score, message):
    with pytest.raises(ValueError, match=message):
        secret_sharer(len, TEXT, score=score, **SMALL)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda ok: SecretSharerDisplay({}, {}, n_references=9), "at least one"),
        (lambda ok: SecretSharerDisplay({1: [1]}, {2: [1]}, n_references=9), "same numbers"),
        (lambda ok: SecretSharerDisplay({1: [1.5]}, {1: [1]}, n_references=9), "a row of integers"),
        (lambda ok: SecretSharerDisplay({1: [10]}, {1: [1]}, n_references=9), "from 0 to n_references = 9"),
        (lambda ok: SecretSharerDisplay({1: [1]}, {1: [1]}, n_references=9, n_bins=11), "n_bins must be <= 10"),
        (lambda ok: ok.chi_squared(4), r"n_insertions must be one of \[1\], got 4"),
        (lambda ok: ok.epsilon_lower_bound(1, top=0.0), "top must be > 0"),
        (lambda ok: ok.epsilon_lower_bound(1, confidence=1.0), "confidence must be <="),
        (lambda ok: ok.epsilon_lower_bound(1, adjacency="none"), "adjacency must be one of"),
        (lambda ok: ok.epsilon_lower_bound(1, units_per_insertion=0), "units_per_insertion must be >= 1"),
        (lambda ok: cbow_log_perplexity(np.zeros(3), np.zeros((1, 3), int)), "matrices of one shape"),
        (lambda ok: cbow_log_perplexity(np.full((3, 2), np.nan), np.zeros((1, 3), int)), "finite"),
        (lambda ok: cbow_log_perplexity(np.zeros((3, 2)), np.zeros((1, 3))), "three integers a row"),
        (lambda ok: cbow_log_perplexity(np.zeros((3, 2)), np.array([[0, 1, 3]])), "positions of words from 0"),
    ],
)  # fmt: skip
def test_bad_input_of_the_parts(call, message):
    with pytest.raises(ValueError, match=message):
        call(SecretSharerDisplay({1: [1]}, {1: [1]}, n_references=9))
