import pytest
from hypothesis import given
from hypothesis import strategies as st

from halfbyte.runtime.cache.pages import PagePool

N_PAGES = 6


def label(token):
    return bytes([token]) * 4


class Holder:
    """Pages of one text, taken one by one as a sequence does."""

    def __init__(self, pool, text):
        self.pool = pool
        self.pages, self.place = pool.tree.match(map(label, text))
        self.text = text[: len(self.pages)]
        pool.share(self.pages)

    def grow(self, token):
        self.pages.append(self.pool.take())
        self.text.append(token)
        if self.pool.keep:
            self.place, page = self.pool.remember(self.place, label(token), self.pages[-1])
            self.pages[-1] = page

    def leave(self):
        self.pool.tree.touch(self.place)
        self.pool.release(self.pages)


def hold(pool, text):
    holder = Holder(pool, list(text))
    for token in text[len(holder.pages) :]:
        holder.grow(token)
    pool.check_integrity()
    return holder


def test_pages_are_handed_out_until_none_is_left():
    pool = PagePool(3)
    assert sorted(pool.take() for _ in range(3)) == [0, 1, 2]
    assert (pool.num_free, pool.num_cached, pool.num_used) == (0, 0, 3)
    with pytest.raises(AssertionError):
        pool.take()


def test_a_text_is_found_again_up_to_where_it_differs():
    pool = PagePool(N_PAGES)
    first = hold(pool, [1, 2, 3])
    first.leave()
    assert pool.num_cached == 3
    assert Holder(pool, [1, 2, 9]).pages == first.pages[:2]
    assert Holder(pool, [2, 3]).pages == []
    assert (pool.num_cached, pool.num_used) == (1, 2)


def test_the_text_unused_for_longest_leaves_first_and_its_end_before_its_beginning():
    pool = PagePool(4)
    old, new = hold(pool, [1, 2]), hold(pool, [3, 4])
    new.leave()
    old.leave()
    assert [pool.take() for _ in range(4)] == [*reversed(new.pages), *reversed(old.pages)]
    assert [page for page, _ in pool.forget_evicted()] == [*reversed(new.pages), *reversed(old.pages)]
    assert pool.forget_evicted() == []


def test_a_beginning_that_others_share_stays_while_their_ends_leave():
    pool = PagePool(5)
    one, two = hold(pool, [1, 2, 3]), hold(pool, [1, 2, 4, 5])
    one.leave()
    two.leave()
    assert [pool.take() for _ in range(2)] == [one.pages[2], two.pages[3]]
    pool.check_integrity()
    assert Holder(pool, [1, 2, 4]).pages == two.pages[:3]


def test_two_that_made_the_same_page_go_on_with_one():
    pool = PagePool(4)
    one, two = Holder(pool, []), Holder(pool, [])
    one.grow(1)
    two.grow(1)
    assert one.pages == two.pages
    assert (pool.num_free, pool.num_used) == (3, 1)
    pool.check_integrity()


def test_nothing_is_kept_when_told_so():
    pool = PagePool(2, keep=False)
    page = pool.take()
    pool.release([page])
    assert (pool.num_free, pool.num_cached) == (2, 0)


def test_a_page_released_twice_is_our_bug():
    pool = PagePool(2)
    page = pool.take()
    pool.release([page])
    with pytest.raises(AssertionError, match="released more often"):
        pool.release([page])


def test_a_page_that_others_hold_or_may_find_is_shared():
    pool = PagePool(3)
    page = pool.take()
    assert not pool.shared(page)
    pool.share([page])
    assert pool.shared(page)
    assert pool.shared(hold(pool, [1]).pages[0])


def test_a_popular_text_does_not_fill_the_list_of_leaves():
    pool = PagePool(2)
    for _ in range(100):
        hold(pool, [1, 2]).leave()
    assert len(pool.tree._leaves) <= 2


TEXTS = st.lists(st.integers(0, 2), min_size=1, max_size=4)


@given(actions=st.lists(st.tuples(st.booleans(), TEXTS), max_size=40))
def test_no_page_is_lost_or_doubled_whatever_texts_come_and_go(actions):
    pool = PagePool(N_PAGES)
    holders: list[Holder] = []
    for comes, text in actions:
        if comes or not holders:
            holder = Holder(pool, list(text))
            holders.append(holder)
            for token in text[len(holder.pages) :]:
                if pool.available:
                    holder.grow(token)
        else:
            holders.pop(len(text) % len(holders)).leave()
        pool.check_integrity()
        assert pool.num_free + pool.num_cached + pool.num_used == N_PAGES
        assert pool.num_used == len({page for holder in holders for page in holder.pages})
        for holder in holders:
            assert pool.tree.match(map(label, holder.text))[0] == holder.pages
    for holder in holders:
        holder.leave()
    assert pool.available == N_PAGES
    pool.check_integrity()
