import errno
import os
import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from halfbyte.errors import ConfigError, FormatError, HalfbyteError, ResourceError, UnsupportedError
from halfbyte.formats import new_file
from tests.runtime.cache.sessions import (
    ABOUT,
    FINGERPRINT,
    NUM_PAGES,
    PAGE,
    RUNS,
    check,
    load_session,
    page,
    read_page,
    run,
    save_session,
)


@pytest.fixture
def saved(tmp_path):
    return save_session(tmp_path / "chat.session")


def test_what_is_saved_is_loaded(saved):
    with load_session(saved) as session:
        check(session)
        assert dict(session.about) == ABOUT
    session.close()


@pytest.mark.parametrize("runs", [(), (run(-1, [1], 0),), (run(-1, [1], 1),)], ids=["nothing", "no page", "one page"])
def test_the_smallest_sessions(tmp_path, runs):
    with load_session(save_session(tmp_path / "s", runs)) as session:
        check(session, runs)


def test_pages_pass_through_one_at_a_time(tmp_path):
    buffers = set()

    def fill(index, out):
        buffers.add(out.ctypes.data)
        read_page(index, out)

    save_session(tmp_path / "s", read_page=fill)
    assert len(buffers) == 1


def test_a_session_of_another_model_says_what_differs(saved):
    with pytest.raises(ConfigError, match=r"saved with kv 'f16' where now it is kv 'q8_0'") as caught:
        load_session(saved, bytes(16), ABOUT | {"kv": "q8_0"})
    assert caught.value.key == "path"
    with pytest.raises(ConfigError, match="another file of the model"):
        load_session(saved, bytes(16))


def test_a_newer_version_is_no_damage(saved):
    data = bytearray(saved.read_bytes())
    data[8] += 1
    saved.write_bytes(data)
    with pytest.raises(UnsupportedError, match="version 2") as caught:
        load_session(saved)
    assert caught.value.known == ("1",)


@pytest.mark.parametrize("content", [b"", b"\x89", b"GGUF" + bytes(200), bytes(200)])
def test_another_kind_of_file_is_refused(tmp_path, content):
    path = tmp_path / "other"
    path.write_bytes(content)
    with pytest.raises(FormatError, match="it is no session") as caught:
        load_session(path)
    assert (caught.value.path, caught.value.offset) == (str(path), 0)


def test_no_file_a_folder_and_a_pipe_are_mistakes_of_the_caller(tmp_path):
    with pytest.raises(ConfigError, match="no such file"):
        load_session(tmp_path / "missing")
    with pytest.raises(ConfigError, match="is a folder"):
        load_session(tmp_path)
    if hasattr(os, "mkfifo"):
        os.mkfifo(tmp_path / "pipe")
        with pytest.raises(ConfigError, match="not a regular file"):
            load_session(tmp_path / "pipe")


def test_a_file_cut_anywhere_is_refused(saved):
    data = saved.read_bytes()
    for size in {*range(0, len(data), 97), *range(130), len(data) - 1}:
        saved.write_bytes(data[:size])
        with pytest.raises(FormatError) as caught:
            load_session(saved)
        assert caught.value.offset is not None
    saved.write_bytes(data + b"x")
    with pytest.raises(FormatError, match="cut short or damaged"):
        load_session(saved)


def test_every_flipped_byte_is_noticed(saved):
    sound = saved.read_bytes()
    pages_at = len(sound) - NUM_PAGES * PAGE
    tracemalloc.start()
    try:
        for at in (*range(pages_at), *range(pages_at, len(sound), 7)):
            data = bytearray(sound)
            data[at] ^= 0xFF
            saved.write_bytes(data)
            with pytest.raises(HalfbyteError):
                load_session(saved)
        assert tracemalloc.get_traced_memory()[1] < 4 << 20
    finally:
        tracemalloc.stop()


@given(changes=st.lists(st.tuples(st.integers(0, 400), st.binary(min_size=1, max_size=9)), min_size=1, max_size=4))
def test_whatever_is_written_over_it_a_session_is_refused_or_right(tmp_path_factory, changes):
    path = save_session(tmp_path_factory.mktemp("fuzz") / "s")
    data = bytearray(path.read_bytes())
    for at, patch in changes:
        data[at : at + len(patch)] = patch
    path.write_bytes(data)
    try:
        session = load_session(path)
    except HalfbyteError:
        return
    with session:
        check(session)


def reseal(data):
    """A forged header with a right checksum."""
    import zlib

    body_end = len(data) - NUM_PAGES * PAGE
    data[12:16] = zlib.crc32(data[16:body_end]).to_bytes(4, "little")
    return bytes(data)


FORGED = {
    "a parent that comes later": lambda at: {at: (0).to_bytes(4, "little")},
    "a parent before the first": lambda at: {at: (-2).to_bytes(4, "little", signed=True)},
    "fewer tokens than promised": lambda at: {at + 4: (11).to_bytes(4, "little")},
    "a negative number of tokens": lambda at: {at + 4: (-12).to_bytes(4, "little", signed=True)},
    "more pages than promised": lambda at: {at + 8: (4).to_bytes(4, "little")},
    "more pages than tokens": lambda at: {at + 8: (13).to_bytes(4, "little")},
    "a negative token": lambda at: {at + 12 * len(RUNS): (-1).to_bytes(4, "little", signed=True)},
    "a description that is no mapping": lambda at: {at - 1: b"]"},
    "a reserved number": lambda at: {72: b"\1"},
}


@pytest.mark.parametrize("forge", FORGED.values(), ids=FORGED)
def test_a_header_that_makes_no_sense_is_refused_even_with_a_right_checksum(saved, forge):
    data = bytearray(saved.read_bytes())
    about_bytes = int.from_bytes(data[64:72], "little")
    for at, patch in forge(80 + about_bytes).items():
        data[at : at + len(patch)] = patch
    saved.write_bytes(reseal(data))
    with pytest.raises(FormatError):
        load_session(saved)


def test_a_promise_of_more_than_the_file_has_allocates_nothing(saved):
    data = bytearray(saved.read_bytes())
    for at in range(32, 80, 8):
        forged = data.copy()
        forged[at : at + 8] = (1 << 62).to_bytes(8, "little")
        saved.write_bytes(reseal(forged))
        with pytest.raises(FormatError):
            load_session(saved)


def test_a_hole_as_large_as_promised_allocates_nothing_either(saved):
    data = bytearray(saved.read_bytes())
    more = 1 << 36
    data[56:64] = (int.from_bytes(data[56:64], "little") + more).to_bytes(8, "little")
    saved.write_bytes(data)
    os.truncate(saved, len(data) + 4 * more)
    with pytest.raises(FormatError, match="damaged"):
        load_session(saved)


def test_damage_after_loading_is_noticed_too(saved):
    with load_session(saved) as session:
        with saved.open("r+b") as file:
            file.seek(-1, os.SEEK_END)
            file.write(bytes([page(NUM_PAGES - 1)[-1] ^ 1]))
        out = np.zeros(PAGE, np.uint8)
        session.read_page(0, out)
        with pytest.raises(FormatError, match="page 5 does not match"):
            session.read_page(NUM_PAGES - 1, out)
        os.truncate(saved, 100)
        with pytest.raises(FormatError):
            session.read_page(0, out)


def test_a_failed_save_leaves_the_old_session_and_nothing_else(saved, tmp_path):
    def fail(index, out):
        if index == 2:
            raise KeyboardInterrupt
        read_page(index, out)

    before = saved.read_bytes()
    with pytest.raises(KeyboardInterrupt):
        save_session(saved, read_page=fail)
    assert saved.read_bytes() == before
    assert [entry.name for entry in tmp_path.iterdir()] == [saved.name]


def test_a_full_disk_is_told_and_leaves_nothing(tmp_path, monkeypatch):
    def full(self, offset, data):
        raise self._explain(OSError(errno.ENOSPC, "No space left on device"))

    monkeypatch.setattr(new_file.NewFile, "write", full)
    with pytest.raises(ResourceError, match="disk is full") as caught:
        save_session(tmp_path / "s")
    assert caught.value.needed > NUM_PAGES * PAGE
    assert list(tmp_path.iterdir()) == []


def test_a_place_that_takes_no_file_is_told(tmp_path):
    with pytest.raises(ConfigError, match="no folder"):
        save_session(tmp_path / "missing" / "s")


def test_pages_of_another_size_are_refused(saved):
    from halfbyte.runtime.cache.session_file import load

    with pytest.raises(FormatError, match="pages of 100 bytes"):
        load(saved, FINGERPRINT, page_bytes=PAGE + 1, about=ABOUT)
