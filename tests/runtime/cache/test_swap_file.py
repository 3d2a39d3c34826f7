import contextlib
import os
import subprocess
import sys

import numpy as np
import pytest

from halfbyte.errors import ConfigError, ResourceError
from halfbyte.runtime.cache.swap_file import SwapFile
from halfbyte.runtime.cache.swap_places import SwapPlaces

PAGE = 100


def page(fill):
    return np.full(PAGE, fill, np.uint8)


@pytest.fixture
def swap(tmp_path):
    with contextlib.closing(SwapFile(PAGE, tmp_path)) as made:
        yield made


def test_a_page_comes_back_as_it_was_written(swap):
    for place in range(10):
        swap.write(place, page(place))
    out = page(255)
    for place in (3, 0, 9):
        swap.read(place, out)
        assert (out == place).all()


def test_the_file_has_no_name_and_grows_only_when_needed(swap, tmp_path):
    for fill in range(50):
        swap.write(0, page(fill))
    assert os.fstat(swap._file.fileno()).st_size == PAGE
    if sys.platform != "win32":
        assert list(tmp_path.iterdir()) == []


def test_closing_twice_is_fine(swap):
    swap.close()
    swap.close()


def test_a_folder_that_takes_no_files_is_told_at_once(tmp_path):
    with pytest.raises(ConfigError, match="name another folder") as caught:
        SwapFile(PAGE, tmp_path / "missing")
    assert caught.value.key == "swap_space"


FULL_DISK = """
import resource, signal, sys
import numpy as np
from halfbyte.errors import ResourceError
from halfbyte.runtime.cache.swap_file import SwapFile
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (250, 250))
swap = SwapFile(100, sys.argv[1])
for place in (0, 1):
    swap.write(place, np.full(100, place + 1, np.uint8))
try:
    swap.write(2, np.full(100, 3, np.uint8))
except ResourceError as error:
    assert error.needed == 100
else:
    raise SystemExit("took a page that had no room")
out = np.zeros(100, np.uint8)
swap.read(1, out)
assert (out == 2).all()
"""


@pytest.mark.skipif(sys.platform == "win32", reason="a limit on the size of files stands for the full disk")
def test_a_full_disk_is_a_typed_error_and_what_is_kept_stays(tmp_path):
    run = subprocess.run([sys.executable, "-c", FULL_DISK, str(tmp_path)], capture_output=True, text=True, timeout=60)
    assert run.returncode == 0, run.stderr


def test_a_file_that_lost_its_end_is_a_typed_error(swap):
    swap.write(0, page(1))
    swap._file.truncate(PAGE // 2)
    with pytest.raises(ResourceError, match="cannot be read"):
        swap.read(0, page(0))


def test_places_are_taken_from_the_front_and_used_again():
    places = SwapPlaces(3)
    assert [places.take() for _ in range(3)] == [0, 1, 2]
    assert places.available == 0
    places.release([2, 0])
    assert (places.used, places.available) == (1, 2)
    assert [places.take(), places.take()] == [0, 2]
    places.check_integrity([0, 1, 2])
    with pytest.raises(AssertionError):
        places.take()
