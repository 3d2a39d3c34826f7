import pytest
from hypothesis import given
from hypothesis import strategies as st

from halfbyte.runtime.pages import ROOT, PagePool, page_key

N_PAGES = 5


def test_pages_are_handed_out_until_none_is_left():
    pool = PagePool(3)
    assert sorted(pool.take() for _ in range(3)) == [0, 1, 2]
    assert (pool.num_free, pool.num_cached, pool.num_used) == (0, 0, 3)
    with pytest.raises(AssertionError):
        pool.take()


def test_a_remembered_page_is_found_again_and_an_unknown_one_ends_the_match():
    pool = PagePool(4)
    pages = [pool.take(), pool.take()]
    keys = [page_key(ROOT, b"a")]
    keys.append(page_key(keys[0], b"b"))
    for page, key in zip(pages, keys, strict=True):
        pool.remember(page, key)
    pool.release(pages)
    assert pool.num_cached == 2
    assert pool.match(keys) == pages
    assert pool.match([keys[0], b"unknown", keys[1]]) == pages[:1]
    pool.share(pages)
    assert (pool.num_cached, pool.num_used) == (0, 2)


def test_the_same_tokens_after_another_beginning_have_another_key():
    assert page_key(page_key(ROOT, b"a"), b"c") != page_key(page_key(ROOT, b"b"), b"c")


def test_the_page_unused_for_longest_is_forgotten_first_and_tails_before_heads():
    pool = PagePool(3)
    old = [pool.take(), pool.take()]
    new = [pool.take()]
    for page in old + new:
        pool.remember(page, b"%d" % page)
    pool.release(old)
    pool.release(new)
    assert [pool.take() for _ in range(3)] == [old[1], old[0], new[0]]
    assert pool.match([b"%d" % old[0]]) == []


def test_nothing_is_kept_when_told_so():
    pool = PagePool(2, keep=False)
    page = pool.take()
    pool.remember(page, b"key")
    pool.release([page])
    assert (pool.num_free, pool.num_cached) == (2, 0)


def test_a_page_released_twice_is_our_bug():
    pool = PagePool(2)
    page = pool.take()
    pool.release([page])
    with pytest.raises(AssertionError, match="released more often"):
        pool.release([page])


ACTIONS = st.lists(st.tuples(st.sampled_from(["take", "share", "release", "remember"]), st.integers(0, 9)), max_size=60)


@given(actions=ACTIONS)
def test_no_page_is_lost_or_doubled_whatever_happens(actions):
    pool = PagePool(N_PAGES)
    holders: list[list[int]] = []
    for what, pick in actions:
        holder = holders[pick % len(holders)] if holders else []
        if what == "take" and pool.available:
            holders.append([pool.take()])
        elif what == "share":
            pages = holder or pool.match([b"%d" % (pick % 3)])
            pool.share(pages)
            holders.append(list(pages))
        elif what == "release" and holders:
            holders.remove(holder)
            pool.release(holder)
        elif what == "remember" and holder and holder[0] not in pool._key_of:
            pool.remember(holder[0], b"%d" % (pick % 3))
        pool.check_integrity()
        assert pool.num_free + pool.num_cached + pool.num_used == N_PAGES
        assert pool.num_used == len({page for pages in holders for page in pages})
    for holder in holders:
        pool.release(holder)
    assert pool.available == N_PAGES
    pool.check_integrity()
