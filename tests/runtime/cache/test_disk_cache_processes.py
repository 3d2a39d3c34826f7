"""The disk cache among processes: shared, killed, forked, left open at the end."""

import gc
import os
import random
import subprocess
import sys
import threading
import time
import weakref

import pytest

from halfbyte.runtime.cache import page_writer
from tests.runtime.cache.disk_cache_worker import KEYS
from tests.runtime.cache.pages import found, open_cache, put
from tests.source_tree import ROOT

WRITER = "halfbyte-disk-cache"


def start(*command):
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])}
    command = [sys.executable, *map(str, command)]
    return subprocess.Popen(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def finish(process):
    out, complaints = process.communicate(timeout=60)
    assert process.returncode == 0, complaints.decode()
    return out.decode()


def worker(folder, seed, rounds):
    return start("-m", "tests.runtime.cache.disk_cache_worker", folder, seed, rounds, 40)


def test_processes_that_write_read_and_evict_at_once_see_right_bytes_or_none(tmp_path):
    workers = [worker(tmp_path, seed, 1500) for seed in range(3)]
    assert all(int(finish(process)) > 0 for process in workers)
    assert 0 < len(list(tmp_path.rglob("*.page"))) <= 40 * 1.25
    cache = open_cache(tmp_path, fingerprint=bytes(16))
    assert any(found(cache, number) for number in range(KEYS))


def test_a_killed_writer_leaves_right_bytes_or_none(tmp_path):
    chance = random.Random(7)
    steady = worker(tmp_path, 100, 4000)
    for seed in range(4):
        victim = worker(tmp_path, seed, 10**9)
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline and not list(tmp_path.rglob("*.page")):
            time.sleep(0.01)
        time.sleep(0.3 + chance.random() * 0.2)
        assert victim.poll() is None, victim.stderr.read().decode()
        victim.kill()
        victim.communicate()
    finish(steady)
    cache = open_cache(tmp_path, fingerprint=bytes(16))
    assert sum(found(cache, number) for number in range(KEYS)) > 0
    assert cache.counts()["damaged"] == 0


FORKS = """
import os, sys
from tests.runtime.cache.pages import found, key_of, open_cache, page_of, put
cache = open_cache(sys.argv[1])
put(cache, 1)
with cache._writer._changed:  # another thread might hold it at that moment
    child = os.fork()
    if child == 0:
        assert not cache.put(key_of(2), page_of(key_of(2)), wait=True)
        assert found(cache, 1) and not cache.has(key_of(2))
        cache.flush()
        cache.close()
        os._exit(0)
assert os.waitpid(child, 0)[1] == 0
put(cache, 3)
assert found(cache, 3)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_forked_process_reads_and_never_waits_for_a_thread_it_does_not_have(tmp_path):
    finish(start("-W", "ignore::DeprecationWarning", "-c", FORKS, tmp_path))


LEAVES = """
import sys
from tests.runtime.cache.pages import key_of, open_cache, page_of
cache = open_cache(sys.argv[1])
for number in range(20):
    cache.put(key_of(number), page_of(key_of(number)))
"""


def test_a_cache_left_open_does_not_keep_the_process(tmp_path):
    finish(start("-c", LEAVES, tmp_path))


def test_no_thread_before_the_first_page_and_none_after_the_last(tmp_path, monkeypatch):
    others = set(threading.enumerate())

    def writers():
        return [thread for thread in threading.enumerate() if thread.name == WRITER and thread not in others]

    monkeypatch.setattr(page_writer, "IDLE_S", 0.01)
    cache = open_cache(tmp_path)
    assert not found(cache, 1)
    assert writers() == []
    put(cache, 1)
    for thread in writers():
        thread.join(timeout=30)
    assert writers() == []
    put(cache, 2)
    assert found(cache, 2)
    gone = weakref.ref(cache)
    for thread in writers():
        thread.join(timeout=30)
    del cache
    gc.collect()
    assert gone() is None
