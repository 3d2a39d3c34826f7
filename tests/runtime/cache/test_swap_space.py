import contextlib
import os
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from halfbyte.errors import ConfigError, ResourceError
from halfbyte.runtime.cache.swap_space import SwapSpace

PAGE = 100


def page(fill):
    return np.full(PAGE, fill, np.uint8)


@pytest.fixture
def space(tmp_path):
    """Makes swap spaces and closes them."""
    with contextlib.ExitStack() as stack:
        yield lambda max_bytes: stack.enter_context(contextlib.closing(SwapSpace(max_bytes, PAGE, tmp_path)))


def test_a_page_comes_back_as_it_was_put(space):
    swap = space(10 * PAGE + 5)
    assert swap.available == 10
    places = [swap.put(page(fill)) for fill in range(10)]
    assert swap.available == 0
    out = page(255)
    for fill in (3, 0, 9):
        swap.get(places[fill], out)
        assert (out == fill).all()
    swap.check_integrity()


def test_space_for_less_than_a_page_holds_none(space):
    assert space(PAGE - 1).available == 0


def test_a_freed_place_is_filled_again_and_the_file_does_not_grow(space):
    swap = space(100 * PAGE)
    for fill in range(50):
        swap.free(swap.put(page(fill)))
    assert os.fstat(swap._file.fileno()).st_size == PAGE


def test_the_file_has_no_name_and_grows_only_when_needed(space, tmp_path):
    swap = space(1 << 40)
    swap.put(page(1))
    assert os.fstat(swap._file.fileno()).st_size == PAGE
    if sys.platform != "win32":
        assert list(tmp_path.iterdir()) == []


def test_closing_twice_is_fine_and_leaves_no_place(space):
    swap = space(PAGE)
    swap.close()
    swap.close()
    assert swap.available == 0


def test_using_a_place_that_holds_nothing_is_our_bug(space):
    swap = space(PAGE)
    place = swap.put(page(1))
    swap.free(place)
    with pytest.raises(AssertionError, match="holds nothing"):
        swap.get(place, page(0))
    with pytest.raises(AssertionError, match="more often"):
        swap.free(place)


def test_a_folder_that_takes_no_files_is_told_at_once(tmp_path):
    with pytest.raises(ConfigError, match="name another folder") as caught:
        SwapSpace(PAGE, PAGE, tmp_path / "missing")
    assert caught.value.key == "swap_space"


FULL_DISK = """
import resource, signal, sys
import numpy as np
from halfbyte.errors import ResourceError
from halfbyte.runtime.cache.swap_space import SwapSpace
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (250, 250))
swap = SwapSpace(1000, 100, sys.argv[1])
kept = [swap.put(np.full(100, fill, np.uint8)) for fill in (1, 2)]
try:
    swap.put(np.full(100, 3, np.uint8))
except ResourceError as error:
    assert error.needed == 100
else:
    raise SystemExit("took a page that had no room")
swap.check_integrity()
assert swap.available == 8
out = np.zeros(100, np.uint8)
swap.get(kept[1], out)
assert (out == 2).all()
swap.free(kept[0])
place = swap.put(np.full(100, 4, np.uint8))
swap.get(place, out)
assert (out == 4).all()
"""


@pytest.mark.skipif(sys.platform == "win32", reason="a limit on the size of files stands for the full disk")
def test_a_full_disk_is_a_typed_error_and_what_is_kept_stays(tmp_path):
    run = subprocess.run([sys.executable, "-c", FULL_DISK, str(tmp_path)], capture_output=True, text=True, timeout=60)
    assert run.returncode == 0, run.stderr


def test_a_file_that_lost_its_end_is_a_typed_error(space):
    swap = space(PAGE)
    place = swap.put(page(1))
    swap._file.truncate(PAGE // 2)
    with pytest.raises(ResourceError, match="cannot be read"):
        swap.get(place, page(0))


@given(actions=st.lists(st.tuples(st.booleans(), st.integers(0, 9)), max_size=40))
def test_pages_keep_their_bytes_whatever_comes_and_goes(actions):
    swap = SwapSpace(4 * PAGE, PAGE)
    kept = {}
    for number, (puts, pick) in enumerate(actions):
        if puts and swap.available:
            kept[swap.put(page(number))] = number
        elif kept:
            place = sorted(kept)[pick % len(kept)]
            out = page(255)
            swap.get(place, out)
            assert (out == kept.pop(place)).all()
            swap.free(place)
        swap.check_integrity()
        assert swap.available == 4 - len(kept)
    swap.close()
