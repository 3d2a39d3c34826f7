import errno
import logging
import os
import shutil
import stat
import sys
import tempfile
import threading
import time

import numpy as np
import pytest

from halfbyte.errors import ConfigError, ResourceError
from halfbyte.runtime.cache import page_folder
from halfbyte.runtime.cache.disk_cache import DiskCache
from tests.runtime.cache.pages import FINGERPRINT, PAGE, found, key_of, open_cache, page_of, put


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "kv"


def files(folder):
    return sorted(path for path in folder.rglob("*") if path.is_file())


def file_of(folder, number):
    name = key_of(number).hex()
    return folder / name[:2] / f"{name}.page"


def age(folder, number, seconds):
    then = time.time() - seconds
    os.utime(file_of(folder, number), (then, then))


def test_a_page_comes_back_in_another_instance(folder):
    cache = open_cache(folder)
    put(cache, 1, 2)
    cache.close()
    other = open_cache(folder)
    assert found(other, 1)
    assert found(other, 2)
    assert not found(other, 3)
    assert [other.has(key_of(number)) for number in (1, 2, 3)] == [True, True, False]
    assert other.counts() == dict.fromkeys(other.counts(), 0) | {"hits": 2, "misses": 1}


def test_a_page_of_another_model_is_none(folder):
    cache = open_cache(folder)
    put(cache, 1)
    assert not found(open_cache(folder, fingerprint=bytes(16)), 1)


DAMAGE = {
    "empty": lambda data: b"",
    "cut": lambda data: data[:-1],
    "cut in the header": lambda data: data[:40],
    "longer": lambda data: data + b"x",
    "a byte of the page": lambda data: data[:-1] + bytes([data[-1] ^ 1]),
    "a byte of the checksum": lambda data: data[:48] + bytes([data[48] ^ 1]) + data[49:],
    "a byte of padding": lambda data: data[:63] + b"x" + data[64:],
    "zeros": lambda data: bytes(len(data)),
    "another page": lambda data: data[:24] + key_of(2) + data[40:],
}


@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE)
def test_a_damaged_page_is_none_and_removed_and_can_be_put_again(folder, damage):
    cache = open_cache(folder)
    put(cache, 1)
    path = file_of(folder, 1)
    path.write_bytes(damage(path.read_bytes()))
    assert not found(cache, 1)
    assert not path.exists()
    assert cache.counts()["damaged"] == 1
    put(cache, 1)
    assert found(cache, 1)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
def test_a_pipe_in_place_of_a_page_is_no_page_and_nobody_waits_for_it(folder):
    cache = open_cache(folder)
    put(cache, 1)
    file_of(folder, 1).unlink()
    os.mkfifo(file_of(folder, 1))
    assert not found(open_cache(folder), 1)


def test_what_waits_to_be_written_can_be_read(folder, monkeypatch):
    cache = open_cache(folder)
    go = threading.Event()
    write = cache._folder.write
    monkeypatch.setattr(cache._folder, "write", lambda *what: go.wait() and write(*what))
    data = page_of(key_of(1)).copy()
    assert cache.put(key_of(1), data)
    data[:] = 0
    assert cache.has(key_of(1))
    assert found(cache, 1)
    assert files(folder) == []
    go.set()
    cache.flush()
    assert found(cache, 1)
    assert len(files(folder)) == 1
    cache.close()


def test_pages_are_dropped_when_the_disk_cannot_follow_unless_one_waits(folder, monkeypatch):
    cache = open_cache(folder, queue_pages=2)
    go = threading.Event()
    write = cache._folder.write
    monkeypatch.setattr(cache._folder, "write", lambda *what: go.wait() and write(*what))
    page = page_of(key_of(0))
    assert [cache.put(key_of(number), page_of(key_of(number))) for number in range(4)] == [True, True, False, False]
    assert cache.put(key_of(1), page), "it waits there already"
    assert cache.counts()["dropped"] == 2
    threading.Timer(0.05, go.set).start()
    assert cache.put(key_of(5), page_of(key_of(5)), wait=True)
    cache.close()
    assert [found(cache, number) for number in range(6)] == [True, True, False, False, False, True]


def test_closing_twice_is_fine_and_what_comes_later_is_dropped(folder):
    cache = open_cache(folder)
    put(cache, 1)
    cache.close()
    cache.close()
    assert not cache.put(key_of(2), page_of(key_of(2)))
    assert not cache.put(key_of(2), page_of(key_of(2)), wait=True)
    assert found(cache, 1)
    cache.flush()


def test_the_oldest_pages_go_first_and_reading_makes_young(folder):
    cache = open_cache(folder, max_pages=16)
    put(cache, *range(16))
    for number in range(16):
        age(folder, number, 1000 - number)
    assert found(cache, 0)
    put(cache, 16)
    kept = [number for number in range(17) if file_of(folder, number).exists()]
    assert kept == [0, *range(4, 17)]
    assert cache.counts()["evicted"] == 3


def test_putting_what_is_there_makes_young_and_writes_nothing(folder):
    cache = open_cache(folder)
    put(cache, 1)
    age(folder, 1, 1000)
    put(cache, 1)
    assert cache.counts()["written"] == 1
    assert time.time() - file_of(folder, 1).stat().st_mtime < 500


def test_the_end_of_a_text_is_older_than_its_beginning(folder):
    cache = open_cache(folder)
    put(cache, *range(5))
    assert all(found(cache, number, rank=number) for number in range(5))
    used = [file_of(folder, number).stat().st_mtime_ns for number in range(5)]
    assert used == sorted(used, reverse=True)


def test_the_size_is_bounded_over_all_models_of_the_folder(folder):
    first, second = (open_cache(folder, max_pages=64, fingerprint=bytes([model] * 16)) for model in range(2))
    for number in range(0, 300, 2):
        put(first, number)
        put(second, number + 1)
        assert len(files(folder)) <= 64 + 2 * 2
    assert first.counts()["evicted"] > 0 < second.counts()["evicted"]
    assert found(first, 298)
    assert found(second, 299)


def test_what_is_there_already_counts(folder):
    put(open_cache(folder), *range(20))
    put(open_cache(folder, max_pages=8), 20)
    assert len(files(folder)) <= 8


def test_files_of_others_are_left_alone(folder):
    cache = open_cache(folder, max_pages=2)
    strangers = [folder / "notes.txt", folder / "ab" / "notes.page", folder / "photos" / f"{'0' * 32}.page"]
    for path in strangers:
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(bytes(10 * PAGE))
        os.utime(path, (0, 0))
    put(cache, *range(6))
    assert all(path.exists() for path in strangers)


def test_what_a_dead_process_left_half_written_is_removed(folder):
    cache = open_cache(folder)
    put(cache, 1)
    old, new = (file_of(folder, 1).with_suffix(f".page.{name}.tmp") for name in ("old", "new"))
    for path in (old, new):
        path.write_bytes(b"half")
    then = time.time() - 2 * page_folder.STALE_S
    os.utime(old, (then, then))
    put(open_cache(folder), 2)
    assert not old.exists()
    assert new.exists()


def warnings_in(caplog):
    return [record for record in caplog.records if record.levelno >= logging.WARNING]


def test_a_folder_that_vanishes_is_told_once_and_stays_away(folder, caplog):
    cache = open_cache(folder)
    put(cache, 1)
    shutil.rmtree(folder)
    assert not found(cache, 1)
    put(cache, 2, 3)
    assert not found(cache, 2)
    assert cache.counts()["failed"] == 2
    assert len(warnings_in(caplog)) == 1
    assert str(folder) in warnings_in(caplog)[0].getMessage()
    assert not folder.exists()
    folder.mkdir()
    put(cache, 4)
    assert found(cache, 4)


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EROFS, errno.EACCES, errno.EIO])
def test_trouble_with_the_disk_is_told_once_and_fails_nothing(folder, caplog, monkeypatch, code):
    cache = open_cache(folder)
    put(cache, 1)

    def trouble(*what, **more):
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(page_folder, "write_page", trouble)
    put(cache, 2, 3)
    monkeypatch.setattr(page_folder.os, "utime", trouble)
    assert found(cache, 1)
    monkeypatch.setattr(page_folder, "read_page", trouble)
    assert not found(cache, 1)
    assert len(warnings_in(caplog)) == 1
    assert cache.counts() | {"hits": 1, "misses": 1, "failed": 2} == cache.counts()


def test_a_bug_in_the_writer_does_not_hang_those_who_wait(folder, caplog, monkeypatch):
    cache = open_cache(folder)
    monkeypatch.setattr(cache._folder, "write", lambda *what: 1 / 0)
    put(cache, 1)
    cache.close()
    assert "division" in warnings_in(caplog)[0].getMessage()


@pytest.mark.skipif(sys.platform == "win32", reason="permissions of POSIX")
def test_conversations_are_for_their_owners_eyes(folder):
    cache = open_cache(folder / "deep")
    put(cache, 1)
    assert stat.S_IMODE((folder / "deep").stat().st_mode) == 0o700
    assert {stat.S_IMODE(path.stat().st_mode) for path in files(folder)} == {0o600}
    assert stat.S_IMODE(file_of(folder / "deep", 1).parent.stat().st_mode) == 0o700


def test_a_place_that_is_no_folder_is_refused(tmp_path):
    (tmp_path / "file").write_bytes(b"")
    for place in (tmp_path / "file", tmp_path / "file" / "below", tmp_path / "nul\0"):
        with pytest.raises(ConfigError, match="cannot be a disk cache") as caught:
            open_cache(place)
        assert caught.value.key == "disk_cache"


def test_a_full_disk_is_told_at_the_start(folder, monkeypatch):
    def full(**where):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(tempfile, "mkstemp", full)
    with pytest.raises(ResourceError, match="disk is full"):
        open_cache(folder)


def test_a_size_that_holds_no_page_is_refused(folder):
    with pytest.raises(ConfigError, match="hold no page") as caught:
        DiskCache(folder, PAGE, FINGERPRINT, PAGE)
    assert caught.value.key == "disk_cache_size"
    assert not folder.exists()


def test_pages_without_a_byte_in_common_memory_order_are_kept_whole(folder):
    cache = open_cache(folder)
    pages = np.arange(3 * PAGE, dtype=np.uint8).reshape(3, PAGE)
    for number in range(3):
        cache.put(key_of(number), pages[number])
    cache.close()
    for number in range(3):
        out = np.empty((3, PAGE), np.uint8)
        assert cache.get(key_of(number), out[1])
        assert (out[1] == pages[number]).all()
