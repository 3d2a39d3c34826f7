"""What an importance matrix says of a weight, and two of them together."""

import numpy as np
import pytest

from halfbyte.errors import ConfigError, FormatError
from halfbyte.tools.quantize.imatrix import CHUNK_SIZE, ImportanceMatrix
from halfbyte.tools.quantize.imatrix_entry import Entry


def entry(sums, counts):
    return Entry(np.array(sums, np.float32), np.array(counts, np.float32))


def matrix(chunk_size=512, **entries):
    return ImportanceMatrix({f"{name}.weight": made for name, made in entries.items()}, ("text",), 1, chunk_size)


def test_importance_is_the_mean_and_one_for_experts_that_saw_nothing():
    found = matrix(up=entry([[2, 4], [7, 7], [0, 6]], [2, 0, 3])).importance("up.weight", 2)
    assert found.dtype == np.float32
    assert found.tolist() == [[1, 2], [1, 1], [0, 2]]


def test_experts_that_the_older_form_stacked_come_apart():
    stacked = matrix(up=entry([[2, 4, 6, 8]], [2]))
    assert stacked.importance("up.weight").shape == (1, 4)
    assert stacked.importance("up.weight", 2).tolist() == [[1, 2], [3, 4]]


def test_a_weight_of_other_columns_is_refused_by_name():
    with pytest.raises(FormatError, match=r"'up\.weight' has 4 columns here and 3 in the model"):
        matrix(up=entry([[2, 4, 6, 8]], [2])).importance("up.weight", 3)
    with pytest.raises(FormatError, match=r"'up\.weight' has 2 columns here and 4 in the model"):
        matrix(up=entry([[2, 4], [6, 8]], [2, 1])).importance("up.weight", 4)


def test_an_unknown_weight_names_the_nearest():
    found = matrix(up=entry([[1]], [1]))
    assert "up.weight" in found
    assert "upp.weight" not in found
    with pytest.raises(ConfigError, match=r"'upp\.weight'; did you mean 'up\.weight'"):
        found.importance("upp.weight")


def test_merged_matrices_count_every_token():
    one = ImportanceMatrix({"a": entry([[2, 4]], [2]), "b": entry([[1]], [1])}, ("x", "y"), 3, 256)
    two = ImportanceMatrix({"a": entry([[4, 2]], [4]), "c": entry([[5]], [1])}, ("y", "z"), 2, 512)
    merged = one.merge(two)
    assert (merged.datasets, merged.chunk_count, merged.chunk_size) == (("x", "y", "z"), 5, 256)
    assert merged.entries.keys() == {"a", "b", "c"}
    assert merged.importance("a").tolist() == [[1, 1]]
    assert merged.importance("c").tolist() == [[5]]


def test_merging_weighs_the_older_form_by_its_tokens():
    older = ImportanceMatrix({"a": entry([[6]], [2])}, (), 2, 0)  # mean 3 of two chunks
    newer = ImportanceMatrix({"a": entry([[512.0]], [512])}, (), 1, 512)  # mean 1 of one
    for merged in (older.merge(newer), newer.merge(older)):
        assert merged.entries["a"].counts.tolist() == [3 * 512]
        assert merged.importance("a")[0, 0] == pytest.approx(7 / 3)
    assert older.merge(older).chunk_size == CHUNK_SIZE
    assert older.merge(older).importance("a").tolist() == [[3]]


def test_matrices_of_two_models_do_not_merge():
    with pytest.raises(ConfigError, match=r"'up\.weight' is \[1, 2\] in one and \[1, 3\] in the other"):
        matrix(up=entry([[2, 4]], [2])).merge(matrix(up=entry([[2, 4, 1]], [2])))
