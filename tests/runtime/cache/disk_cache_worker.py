"""A process that uses a shared disk cache until it is killed or has done enough: DIRECTORY SEED ROUNDS MAX_PAGES."""

import random
import sys

from tests.runtime.cache.pages import found, key_of, open_cache, page_of

KEYS = 60


def work(directory, seed, rounds, max_pages):
    chance = random.Random(seed)
    hits = 0
    cache = open_cache(directory, max_pages, fingerprint=bytes(16))
    for _ in range(rounds):
        number = chance.randrange(KEYS)
        if chance.random() < 0.5:
            cache.put(key_of(number), page_of(key_of(number)), rank=number)
        else:
            hits += found(cache, number)
    cache.close()
    counts = cache.counts()
    assert counts["failed"] == counts["damaged"] == 0, counts
    return hits


if __name__ == "__main__":
    directory, *numbers = sys.argv[1:]
    sys.stdout.write(str(work(directory, *map(int, numbers))))
