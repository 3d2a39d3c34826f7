"""Small sessions for tests."""

import numpy as np

from halfbyte.runtime.cache.session_file import SavedRun, load, save

PAGE = 100
FINGERPRINT = bytes(range(16))
ABOUT = {"model": "tiny", "kv": "f16", "page_len": 4}


def run(parent, tokens, num_pages):
    return SavedRun(parent, np.array(tokens, np.int32), num_pages)


RUNS = (run(-1, range(12), 3), run(0, [5, 6, 7, 8], 1), run(0, [9, 9, 9, 9, 9], 2), run(-1, [2**31 - 1], 0))
NUM_PAGES = 6


def page(index):
    return ((np.arange(PAGE) + 31 * index) % 251).astype(np.uint8)


def read_page(index, out):
    out[:] = page(index)


def save_session(path, runs=RUNS, read_page=read_page, fingerprint=FINGERPRINT, about=ABOUT):
    save(path, fingerprint, runs, read_page, page_bytes=PAGE, about=about)
    return path


def load_session(path, fingerprint=FINGERPRINT, about=ABOUT):
    return load(path, fingerprint, page_bytes=PAGE, about=about)


def check(session, runs=RUNS):
    """The content is what was saved."""
    assert [run.parent for run in session.runs] == [run.parent for run in runs]
    assert [run.num_pages for run in session.runs] == [run.num_pages for run in runs]
    for found, saved in zip(session.runs, runs, strict=True):
        assert found.tokens.dtype == np.int32
        assert found.tokens.tolist() == saved.tokens.tolist()
    assert session.num_pages == sum(run.num_pages for run in runs)
    out = np.zeros(PAGE, np.uint8)
    for index in range(session.num_pages):
        session.read_page(index, out)
        assert (out == page(index)).all()
