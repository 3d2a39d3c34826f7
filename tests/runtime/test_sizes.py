import numpy as np
import pytest

from halfbyte.errors import ConfigError
from halfbyte.runtime.sizes import parse_bytes, parse_memory


@pytest.mark.parametrize(
    ("value", "size"),
    [
        ("2GB", 2_000_000_000),
        ("512 MB", 512_000_000),
        ("1.5GiB", 3 << 29),
        ("4k", 4000),
        ("77", 77),
        (" 77B ", 77),
        (".5mib", 1 << 19),
        ("0", 0),
        ("9007199254740993", 9007199254740993),
        (1 << 40, 1 << 40),
        (np.int64(5), 5),
        (0, 0),
    ],
)
def test_sizes(value, size):
    assert parse_bytes(value, "swap_space") == size


@pytest.mark.parametrize(
    "value",
    [
        "",
        "MB",
        "-3MB",
        "3 apples",
        "1e9",
        "nan",
        "3.MB",
        "9" * 400,
        "9" * 9000 + "TB",
        -1,
        1 << 63,
        True,
        None,
        0.5,
        b"1",
    ],
)
def test_what_is_no_size_names_its_key(value):
    with pytest.raises(ConfigError, match="swap_space") as caught:
        parse_bytes(value, "swap_space")
    assert caught.value.key == "swap_space"


@pytest.mark.parametrize(
    ("value", "size"), [(0.25, 250), (1.0, 1000), (300, 300), ("2k", 2000), (np.float64(0.5), 500)]
)
def test_a_float_is_a_share_of_what_is_free(value, size):
    assert parse_memory(value, "kv_memory", free=1000) == size


@pytest.mark.parametrize("value", [0.0, -0.1, 1.1, float("nan"), float("inf"), "half", None])
def test_what_is_no_share_names_its_key(value):
    with pytest.raises(ConfigError, match="kv_memory"):
        parse_memory(value, "kv_memory", free=1000)


def test_a_share_of_nobody_knows_what_is_refused():
    with pytest.raises(ConfigError, match="number of bytes"):
        parse_memory(0.5, "kv_memory", free=None)
    assert parse_memory("1k", "kv_memory", free=None) == 1000
