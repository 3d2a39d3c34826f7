"""Pages whose bytes follow from their keys, for tests of the disk cache."""

from hashlib import blake2b

import numpy as np

from halfbyte.runtime.cache.disk_cache import DiskCache

PAGE = 1000
FINGERPRINT = bytes(range(16))


def key_of(number):
    return blake2b(b"%d" % number, digest_size=16).digest()


def page_of(key):
    return np.frombuffer((key * (PAGE // len(key) + 1))[:PAGE], np.uint8)


def open_cache(directory, max_pages=1000, fingerprint=FINGERPRINT, queue_pages=100):
    entry = PAGE + 64
    return DiskCache(directory, max_pages * entry, fingerprint, PAGE, queue_bytes=queue_pages * PAGE)


def put(cache, *numbers):
    """Write pages, one after the other."""
    for number in numbers:
        key = key_of(number)
        assert cache.put(key, page_of(key), wait=True)
        cache.flush()


def found(cache, number, rank=0):
    """Whether the page is there; proves that its bytes are right."""
    out = np.full(PAGE, 255, np.uint8)
    if not cache.get(key_of(number), out, rank=rank):
        return False
    assert (out == page_of(key_of(number))).all()
    return True
