"""Blocks of files, Arrow tables and arrays: their rows, types and memory, refusals, and files that change."""

import os
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from scipy.sparse import csr_matrix

import skdp
from skdp.base.user_tables import validate_table
from skdp.datasets import Blocks, array_blocks, arrow_blocks, group_bucket, parquet_blocks

pa = pytest.importorskip("pyarrow")
pd = pytest.importorskip("pandas")
pq = pytest.importorskip("pyarrow.parquet")

N = 1000


@pytest.fixture
def frame():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N, 3)).astype(np.float32)
    y = (X[:, 0] > rng.normal(size=N)).astype(int)
    return pd.DataFrame({**dict(zip("abc", X.T)), "y": y, "g": np.sort(rng.integers(0, 90, N))})


def written(frame, folder, cuts=(), row_group_size=None):
    """Write the rows of a frame to files that end at the cuts."""
    for i, (start, stop) in enumerate(zip((0, *cuts), (*cuts, len(frame)))):
        table = pa.Table.from_pandas(frame.iloc[start:stop], preserve_index=False)
        pq.write_table(table, folder / f"part{i}.parquet", row_group_size=row_group_size)
    return folder


# ---------------------------------------------------------------- rows


@pytest.mark.parametrize("row_group_size", [1, 7, 64, 5000])
@pytest.mark.parametrize("cuts", [(), (300,), (0, 1, 999)])
@pytest.mark.parametrize("block_rows", [1, 64, 300, 1000, 5000])
def test_blocks_have_exactly_their_rows_whatever_the_files(frame, tmp_path, row_group_size, cuts, block_rows):
    blocks = parquet_blocks(
        written(frame, tmp_path, cuts, row_group_size), target="y", groups="g", block_rows=block_rows
    )
    for _ in range(2):
        X, y, g = zip(*blocks)
        assert [len(x) for x in X] == [min(block_rows, N - i) for i in range(0, N, block_rows)]
        assert all(x.flags.c_contiguous and x.dtype == np.float32 for x in X)
        np.testing.assert_array_equal(np.concatenate(X), frame[["a", "b", "c"]].to_numpy())
        np.testing.assert_array_equal(np.concatenate(y), frame["y"])
        np.testing.assert_array_equal(np.concatenate(g), frame["g"])
    assert (blocks.dtype, blocks.feature_names) == ("float32", ("a", "b", "c"))


def test_columns_are_read_in_the_order_that_is_asked_for(frame, tmp_path):
    written(frame, tmp_path)
    found = np.concatenate(
        list(parquet_blocks(str(tmp_path / "part0.parquet"), columns=["c", "a"], block_rows=64))
    )
    np.testing.assert_array_equal(found, frame[["c", "a"]].to_numpy())


def test_blocks_keep_their_memory(frame, tmp_path):
    kept = list(parquet_blocks(written(frame, tmp_path), block_rows=64))
    assert not any(np.shares_memory(a, b) for a, b in pairwise(kept))
    np.testing.assert_array_equal(np.concatenate(kept), frame.to_numpy())


@pytest.mark.parametrize(
    ("types", "dtype"),
    [
        (["float32", "float32"], "float32"),
        (["float32", "int8"], "float32"),
        (["float32", "uint16"], "float32"),
        (["float32", "int32"], "float64"),
        (["float32", "float64"], "float64"),
        (["float32", "bool"], "float32"),
        (["float16", "float32"], "float32"),
        (["float16", "float16"], "float64"),
        (["bool", "bool"], "float64"),
        (["int64", "uint64"], "float64"),
    ],
)
def test_the_schema_gives_the_dtype_of_a_local_fit(tmp_path, types, dtype):
    frame = pd.DataFrame({f"{i}": np.array([0, 1, 1]).astype(kind) for i, kind in enumerate(types)})
    blocks = parquet_blocks(written(frame, tmp_path))
    (X,) = blocks
    local = validate_table(skdp.DPIGHTClassifier(), frame)
    assert blocks.dtype == X.dtype == local.dtype == dtype
    np.testing.assert_array_equal(X, local)


def test_large_integers_are_rounded_as_in_a_local_fit_and_missing_cells_are_nan(tmp_path):
    values = np.array([2**53 + 1, 2**53 + 3, 2**63 - 1, -(2**63), 2**62 + 511, 2**62 + 513])
    table = pa.table({"a": values, "b": pa.array([1, None, 3, 4, None, 6]), "y": [True, False] * 3})
    pq.write_table(table, tmp_path / "part0.parquet")
    X = np.concatenate([X for X, y in parquet_blocks(tmp_path, target="y", block_rows=4)])
    np.testing.assert_array_equal(X[:, 0], values.astype(np.float64))
    np.testing.assert_array_equal(X[:, 1], [1, np.nan, 3, 4, np.nan, 6])


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.dictionary(pa.int8(), pa.string())])
def test_labels_may_be_text(tmp_path, kind):
    labels = ["no", "yes", "yes"]
    pq.write_table(pa.table({"a": [1.0, 2, 3], "y": pa.array(labels).cast(kind)}), tmp_path / "part0.parquet")
    ((X, y),) = parquet_blocks(tmp_path, target="y")
    assert y.tolist() == labels


def test_files_may_differ_in_numbers_and_dictionaries_but_not_in_labels(tmp_path):
    def write(i, a, y):
        pq.write_table(pa.table({"a": a, "y": y}), tmp_path / f"part{i}.parquet")

    write(0, np.ones(2, np.float32), pa.array(["u", "v"]).dictionary_encode())
    write(1, np.ones(2), pa.array(["w", "u"]).cast(pa.dictionary(pa.int64(), pa.string())))
    blocks = parquet_blocks(tmp_path, target="y")
    ((X, y),) = blocks
    assert (blocks.dtype, X.dtype, y.tolist()) == ("float64", np.float64, ["u", "v", "w", "u"])
    write(1, np.ones(2), pa.array(["w", "u"]).cast(pa.large_string()))
    assert next(iter(parquet_blocks(tmp_path, target="y")))[1].tolist() == ["u", "v", "w", "u"]
    write(1, np.ones(2), [1, 2])
    with pytest.raises(TypeError, match="must have one type in all files"):
        parquet_blocks(tmp_path, target="y")


def test_the_index_of_a_frame_is_no_column(frame, tmp_path):
    frame.set_index("g").to_parquet(tmp_path / "part0.parquet")
    blocks = parquet_blocks(tmp_path, groups="g", target="y")
    assert blocks.feature_names == ("a", "b", "c")
    np.testing.assert_array_equal(next(iter(blocks))[2], frame["g"])
    assert parquet_blocks(tmp_path, target="y").feature_names == ("a", "b", "c")


# ---------------------------------------------------------------- groups


@pytest.mark.parametrize("block_rows", [1, 50, 5000])
@pytest.mark.parametrize("text", [False, True])
def test_blocks_end_at_the_starts_of_groups(frame, tmp_path, block_rows, text):
    starts = [-5, 0, 3, 4, 60, 95]
    if text:
        frame["g"] = [f"{g:02d}" for g in frame["g"]]
        starts = ["", "00", "03", "04", "60", "95"]
    blocks = parquet_blocks(
        written(frame, tmp_path, (400,)), target="y", groups="g", block_rows=block_rows, group_starts=starts
    )
    X, y, g = zip(*blocks)
    assert len(X) == len(starts)
    for i, labels in enumerate(g):
        wanted = [v for v in frame["g"] if starts[i] <= v and (i + 1 == len(starts) or v < starts[i + 1])]
        assert labels.tolist() == wanted
        assert blocks.check_groups(labels, i)
    np.testing.assert_array_equal(np.concatenate(X), frame[["a", "b", "c"]])
    np.testing.assert_array_equal(np.concatenate(y), frame["y"])


@pytest.mark.parametrize("sparse", [False, True])
def test_blocks_are_buckets(frame, sparse):
    frame["bucket"] = group_bucket(frame["g"].to_numpy(), 8)
    frame = frame.sort_values(["bucket", "g"], kind="stable")
    X = frame[["a", "b"]].to_numpy()
    blocks = array_blocks(csr_matrix(X) if sparse else X, groups=frame["g"].to_numpy(), block_rows=64, n_buckets=8)
    parts = list(blocks)
    assert len(parts) == 8
    assert all(blocks.check_groups(g, i) for i, (_, _, g) in enumerate(parts))
    found = [x.toarray() if sparse else x for x, _, _ in parts]
    np.testing.assert_array_equal(np.concatenate(found), X)


@pytest.mark.parametrize("at", [0, 500, 999])
@pytest.mark.parametrize("label", [0, 45, 89])
def test_a_row_out_of_order_is_refused_and_the_rest_is_not_read(at, label):
    groups = np.repeat(np.arange(90), 12)[:N]
    if groups[at] // 30 == label // 30:
        label = (label + 40) % 90
    groups[at] = label
    blocks = array_blocks(np.ones((N, 1)), groups=groups, block_rows=100, group_starts=[0, 30, 60])
    parts = []
    try:
        parts.extend(g for _, _, g in blocks)
    except ValueError as error:
        assert "places in another block" in str(error)
    else:  # rows after it are of its block, or it is the last one
        assert not all(blocks.check_groups(g, i) for i, g in enumerate(parts))


def test_labels_that_are_text_of_python(frame):
    labels = np.array(["a", "b", "b", "c"], dtype=object)
    blocks = array_blocks(np.ones((4, 1)), groups=labels, group_starts=["a", "b", "c"])
    assert [g.tolist() for _, _, g in blocks] == [["a"], ["b", "b"], ["c"]]
    with pytest.raises(TypeError, match="group_starts"):
        array_blocks(np.ones((4, 1)), groups=labels.astype(str), group_starts=[1, 2])


def test_unsigned_labels_are_compared_exactly():
    labels = np.array([2**63 + 1, 2**63 + 2, 2**63 + 3], dtype=np.uint64)
    blocks = array_blocks(np.ones((3, 1)), groups=labels, group_starts=np.array([0, 2**63 + 2], dtype=np.uint64))
    assert [len(g) for _, _, g in blocks] == [1, 2]


# ---------------------------------------------------------------- refusals


@pytest.mark.parametrize(
    "cells",
    [
        ["u", "v"],
        pa.array(["u", "v"]).dictionary_encode(),
        pa.array([1, 2]).cast(pa.timestamp("s")),
        [[1.0], [2.0]],
        [{"x": 1}, {"x": 2}],
        pa.array(["1", "2"]).cast(pa.decimal128(9, 2)),
        [None, None],
    ],
    ids=str,
)
def test_columns_that_are_no_numbers_are_refused_by_name(tmp_path, cells):
    pq.write_table(pa.table({"a": [1.0, 2.0], "place": cells}), tmp_path / "part0.parquet")
    with pytest.raises(TypeError, match=r"not numeric in .*part0.parquet: column 'place' \(.*columns="):
        parquet_blocks(tmp_path)
    np.testing.assert_array_equal(next(iter(parquet_blocks(tmp_path, columns=["a"]))), [[1], [2]])


@pytest.mark.parametrize(
    ("error", "match", "arguments"),
    [
        (ValueError, "columns names 'z': .* has no such column", {"columns": ["a", "z"]}),
        (ValueError, "target names 'z'", {"target": "z"}),
        (ValueError, "columns holds the target 'y'", {"columns": ["a", "y"], "target": "y"}),
        (ValueError, "each once", {"columns": ["a", "a"]}),
        (ValueError, "at least one column", {"columns": []}),
        (TypeError, "columns must be a list of names", {"columns": "a"}),
        (TypeError, "target must be the name", {"target": 3}),
        (ValueError, "block_rows must be an integer >= 1", {"block_rows": 0}),
        (ValueError, "dtype must be", {"dtype": "float16"}),
        (ValueError, "give groups, too", {"group_starts": [0, 1]}),
        (TypeError, "group_starts", {"groups": "g", "group_starts": ["a", "b"]}),
        (TypeError, "group_starts", {"groups": "t", "group_starts": [0, 1]}),
        (TypeError, "sample_weight must be numbers, and column 't'", {"columns": ["a"], "sample_weight": "t"}),
        (TypeError, "groups must be numbers or text, and column 'd'", {"columns": ["a"], "groups": "d"}),
        (TypeError, "n_buckets", {"columns": ["a"], "groups": "b", "n_buckets": 3}),
    ],
)
def test_wrong_parameters_are_refused_before_rows_are_read(frame, tmp_path, error, match, arguments):
    table = pa.Table.from_pandas(frame[:3]).append_column("t", pa.array(["u"] * 3))
    table = table.append_column("d", pa.array([0] * 3, pa.int32()).cast(pa.date32()))
    pq.write_table(table, tmp_path / "part0.parquet")
    arguments = {"columns": ["a", "b"], **arguments}
    with pytest.raises(error, match=match):
        parquet_blocks(tmp_path, **arguments)


def test_files_that_are_none(frame, tmp_path):
    with pytest.raises(FileNotFoundError, match=r"holds no files \*.parquet"):
        parquet_blocks(tmp_path)
    with pytest.raises(FileNotFoundError):
        parquet_blocks(tmp_path / "absent.parquet")
    (tmp_path / "text.parquet").write_text("a,b\n1,2\n")
    with pytest.raises(ValueError, match="is no Parquet file"):
        parquet_blocks(tmp_path)
    (tmp_path / "text.parquet").unlink()
    path = written(frame, tmp_path) / "part0.parquet"
    with pytest.raises(ValueError, match="its rows would count twice"):
        parquet_blocks([path, tmp_path / ".." / tmp_path.name / "part0.parquet"])
    (tmp_path / "year=2024").mkdir()
    written(frame, tmp_path / "year=2024")
    with pytest.raises(ValueError, match=r"arrow_blocks\(pyarrow.dataset"):
        parquet_blocks(tmp_path)


def test_missing_groups_are_refused_without_a_cell(tmp_path):
    pq.write_table(pa.table({"a": [1.0, 2.0], "g": [7, None]}), tmp_path / "part0.parquet")
    for more in ({}, {"group_starts": [0]}, {"n_buckets": 2}):
        with pytest.raises(ValueError, match="groups contains missing values") as found:
            list(parquet_blocks(tmp_path, groups="g", **more))
        assert "7" not in str(found.value)


# ---------------------------------------------------------------- files that change


def rewritten(path):
    table = pq.read_table(path)
    pq.write_table(table.set_column(0, "a", pa.array(np.zeros(N, np.float32))), path)


def touched(path):
    os.utime(path, ns=(0, 0))


def same_but_footer(path):
    """Another footer of the same length, with the file's times restored."""
    times = path.stat()
    content = bytearray(path.read_bytes())
    at = content.rindex(b"parquet-cpp")
    content[at] = ord("P")
    path.write_bytes(content)
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))


@pytest.mark.parametrize(
    ("change", "what"),
    [
        (rewritten, "size"),
        (touched, "time of change"),
        (same_but_footer, "another footer"),
        (Path.unlink, "cannot be opened"),
        (lambda path: path.write_bytes(b"PAR"), "no Parquet file any more"),
    ],
)
@pytest.mark.parametrize("during", [False, True])
def test_a_file_that_changes_is_noticed(frame, tmp_path, change, what, during):
    path = written(frame, tmp_path) / "part0.parquet"
    blocks = parquet_blocks(path, block_rows=100)
    list(blocks)
    again = iter(blocks)
    if during:
        next(again)
    change(path)
    with pytest.raises(RuntimeError, match=rf"part0.parquet changed since .*{what}"):
        list(again)


def test_a_broken_page_is_told_without_pyarrows_text(frame, tmp_path):
    path = written(frame, tmp_path) / "part0.parquet"
    content = bytearray(path.read_bytes())
    content[4:200] = bytes(196)
    path.write_bytes(content)
    with pytest.raises(OSError, match=r"part0.parquet cannot be read as Parquet \(\w+\)$"):
        list(parquet_blocks(path))


def test_a_memory_map_that_changes_is_noticed(tmp_path):
    path = tmp_path / "X.npy"
    np.save(path, np.ones((50, 2)))
    blocks = array_blocks(np.load(path, mmap_mode="r")[10:, :1], block_rows=8)
    assert [len(X) for X in blocks] == [8] * 5
    os.utime(path, ns=(0, 0))
    with pytest.raises(RuntimeError, match=r"X.npy changed since .* another time of change"):
        list(blocks)


# ---------------------------------------------------------------- arrays


@pytest.mark.parametrize("block_rows", [1, 64, 5000])
def test_blocks_of_arrays_are_views_that_cannot_be_written(frame, block_rows):
    X, y = frame[["a", "b"]].to_numpy().copy(), frame["y"].to_numpy()
    blocks = array_blocks(X, y, sample_weight=np.ones(N), block_rows=block_rows)
    parts = list(blocks)
    assert all(np.shares_memory(x, X) and not x.flags.writeable for x, *_ in parts)
    assert X.flags.writeable
    assert all(g is None for _, _, g, _ in parts)
    np.testing.assert_array_equal(np.concatenate([x for x, *_ in parts]), X)


def test_blocks_of_a_sparse_matrix(frame):
    X = csr_matrix(frame[["a", "y"]].to_numpy())
    parts = list(array_blocks(X, block_rows=300))
    assert [x.format for x in parts] == ["csr"] * 4
    np.testing.assert_array_equal(np.concatenate([x.toarray() for x in parts]), X.toarray())


def test_arrays_that_are_refused(frame):
    with pytest.raises(TypeError, match="got DataFrame"):
        array_blocks(frame)
    with pytest.raises(TypeError, match=r"X.tocsr\(\)"):
        array_blocks(csr_matrix(np.ones((3, 2))).tocsc())
    with pytest.raises(TypeError, match="got dtype object"):
        array_blocks(np.ones((3, 2), dtype=object))
    with pytest.raises(ValueError, match="got 1 dimensions"):
        array_blocks(np.ones(3))
    with pytest.raises(ValueError, match="groups must be of shape"):
        array_blocks(np.ones((3, 2)), groups=[1, 2])


# ---------------------------------------------------------------- engines


def readers(frame, tmp_path):
    table = pa.Table.from_pandas(frame, preserve_index=False)
    yield "reader", lambda: pa.RecordBatchReader.from_batches(table.schema, table.to_batches(max_chunksize=170))
    yield "table", lambda: table
    yield "batches", lambda: (batch for batch in table.to_batches(max_chunksize=170))
    yield "dataset", pytest.importorskip("pyarrow.dataset").dataset(written(frame, tmp_path, (300, 301)))


@pytest.mark.parametrize("kind", ["reader", "table", "batches", "dataset"])
def test_arrow_sources_give_the_rows_in_their_order(frame, tmp_path, kind):
    source = dict(readers(frame, tmp_path))[kind]
    blocks = arrow_blocks(source, columns=["c", "a"], target="y", block_rows=64)
    for _ in range(2):
        X, y = zip(*blocks)
        assert [len(x) for x in X] == [64] * 15 + [40]
        np.testing.assert_array_equal(np.concatenate(X), frame[["c", "a"]])
        np.testing.assert_array_equal(np.concatenate(y), frame["y"])


def polars_batches(path):
    pl = pytest.importorskip("polars")
    if not hasattr(pl.LazyFrame, "collect_batches"):
        pytest.skip("this version of Polars has no batches")
    return lambda: pl.scan_parquet(path).collect_batches(maintain_order=True, chunk_size=170)


def polars_frame(path):
    return lambda: pytest.importorskip("polars").read_parquet(path)


def duckdb_reader(path):
    duckdb = pytest.importorskip("duckdb")
    return lambda: duckdb.sql(f"SELECT * FROM '{path}' ORDER BY g, a").to_arrow_reader(170)


@pytest.mark.parametrize("source", [polars_batches, polars_frame, duckdb_reader])
def test_other_engines_give_the_rows_in_their_order(frame, tmp_path, source):
    frame = frame.sort_values(["g", "a"])
    path = written(frame, tmp_path) / "part0.parquet"
    blocks = arrow_blocks(source(path), columns=["a", "b", "c"], target="y", block_rows=64)
    for _ in range(2):
        X, y = zip(*blocks)
        assert blocks.dtype == X[0].dtype == np.float32
        np.testing.assert_array_equal(np.concatenate(X), frame[["a", "b", "c"]])
        np.testing.assert_array_equal(np.concatenate(y), frame["y"])


def test_files_of_a_dataset_are_watched(frame, tmp_path):
    dataset = pytest.importorskip("pyarrow.dataset").dataset(written(frame, tmp_path))
    blocks = arrow_blocks(dataset, target="y")
    list(blocks)
    touched(tmp_path / "part0.parquet")
    with pytest.raises(RuntimeError, match="changed since"):
        list(blocks)


def test_sources_that_are_refused(frame):
    table = pa.Table.from_pandas(frame, preserve_index=False)
    with pytest.raises(TypeError, match="a reader is used up"):
        arrow_blocks(table.to_reader())
    with pytest.raises(TypeError, match=r"must give Arrow readers, .* got int"):
        arrow_blocks(lambda: 3)
    with pytest.raises(ValueError, match="gives no table"):
        arrow_blocks(lambda: iter(()))
    given = iter([table, table, table.drop_columns("c")])
    blocks = arrow_blocks(lambda: next(given))
    list(blocks)
    with pytest.raises(RuntimeError, match="other columns"):
        list(blocks)


# ---------------------------------------------------------------- fits


def fit(*data, **more):
    model = skdp.DPLogisticRegression(classes=(0, 1), epsilon=20.0, delta=1e-6, random_state=0)
    return model.set_params(unit="group" if "groups" in more else "record").fit(*data, **more)


@pytest.mark.parametrize("block_rows", [37, 5000])
def test_fits_are_the_local_ones_to_the_last_bit(frame, tmp_path, block_rows):
    X, y = np.ascontiguousarray(frame[["a", "b", "c"]]), frame["y"].to_numpy()
    local = fit(X, y)
    written(frame, tmp_path, (0, 400), row_group_size=53)
    np.save(tmp_path / "X.npy", X)
    made = {"columns": ["a", "b", "c"], "target": "y", "block_rows": block_rows}
    for blocks in (
        parquet_blocks(tmp_path, **made),
        arrow_blocks(lambda: pa.Table.from_pandas(frame), **made),
        array_blocks(np.load(tmp_path / "X.npy", mmap_mode="r"), y, block_rows=block_rows),
    ):
        model = fit(blocks)
        np.testing.assert_array_equal(model.coef_, local.coef_)
        np.testing.assert_array_equal(model.intercept_, local.intercept_)
        assert list(getattr(model, "feature_names_in_", "abc")) == ["a", "b", "c"]


@pytest.mark.filterwarnings("ignore:the model may be no better")  # of 90 groups
def test_fits_of_groups_are_the_local_ones_and_rows_out_of_order_are_refused(frame, tmp_path):
    local = fit(frame[["a", "b", "c"]].to_numpy().copy(), frame["y"], groups=frame["g"])
    made = {"target": "y", "groups": "g", "block_rows": 64, "group_starts": [0, 20, 21, 70]}
    blocks = parquet_blocks(written(frame, tmp_path, (300,)), **made)
    model = skdp.DPLogisticRegression(classes=(0, 1), epsilon=20.0, delta=1e-6, random_state=0, unit="group")
    np.testing.assert_array_equal(model.fit(blocks).coef_, local.coef_)
    frame.loc[999, "g"] = 5
    with pytest.raises(ValueError, match="holds a row of a group that"):
        model.fit(parquet_blocks(written(frame, tmp_path, (300,)), **made))


def test_a_file_that_changes_stops_a_fit_between_its_passes(frame, tmp_path):
    path = written(frame, tmp_path) / "part0.parquet"
    inner = parquet_blocks(path, columns=["a", "b", "c"], target="y")
    passes = []

    def source():
        passes.append(None)
        if len(passes) == 5:
            rewritten(path)
        return inner

    with pytest.raises(RuntimeError, match=r"part0.parquet changed since"):
        fit(Blocks(source))
    assert len(passes) == 5


# ---------------------------------------------------------------- progress and memory


def test_the_bar_knows_all_rows_after_the_first_pass(frame, tmp_path, capsys):
    blocks = parquet_blocks(written(frame, tmp_path), target="y", block_rows=300, progress=True)
    list(blocks)
    assert "1.00k" in capsys.readouterr().err
    list(blocks)
    assert "1.00k/1.00k" in capsys.readouterr().err


MEMORY = """
import sys, threading
import numpy as np, pyarrow as pa, pyarrow.parquet as pq
from skdp.datasets import parquet_blocks

path, n_rows = sys.argv[1], int(sys.argv[2])

def anonymous():
    for line in open("/proc/self/smaps_rollup"):
        if line.startswith("Anonymous:"):
            return int(line.split()[1]) / 1024

for X in parquet_blocks(path + "/small.parquet"):
    pass
start, done, peak = anonymous(), threading.Event(), 0.0

def watch():
    global peak
    while not done.wait(0.002):
        peak = max(peak, anonymous())

watcher = threading.Thread(target=watch)
watcher.start()
rows = 0
for _ in range(2):
    for X in parquet_blocks(path + "/large.parquet", block_rows=50_000):
        rows += len(X)
done.set()
watcher.join()
assert rows == 2 * n_rows
print(peak - start)
"""


@pytest.mark.skipif(not Path("/proc/self/smaps_rollup").exists(), reason="measured on Linux")
@pytest.mark.parametrize(
    "layout", [{"row_group_size": 50_000}, {"row_group_size": 10**9, "use_dictionary": False}], ids=str
)
@pytest.mark.parametrize("n_rows", [1_250_000, pytest.param(5_000_000, marks=pytest.mark.slow)])
def test_a_file_of_100_megabytes_is_read_in_40(tmp_path, n_rows, layout):
    """400 MB in the slow run, of 20 columns; also in one row group, which is not read as a whole."""
    rng = np.random.default_rng(0)
    schema = pa.schema([(f"c{j}", pa.float32()) for j in range(20)])
    for name, rows in (("small", 10), ("large", n_rows)):
        made = [rng.standard_normal(rows, dtype=np.float32) for _ in range(20)]
        pq.write_table(pa.table(made, schema=schema), tmp_path / f"{name}.parquet", **layout)
    assert (tmp_path / "large.parquet").stat().st_size > n_rows * 80
    done = subprocess.run(
        [sys.executable, "-c", MEMORY, str(tmp_path), str(n_rows)],
        capture_output=True,
        text=True,
        cwd=Path(skdp.__file__).parents[1],
    )
    assert done.returncode == 0, done.stderr
    assert float(done.stdout) < 40


def test_blocks_are_public():
    assert isinstance(array_blocks(np.ones((2, 1))), Blocks)
