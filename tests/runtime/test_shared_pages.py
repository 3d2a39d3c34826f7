"""Pages that move: to swap and back, and from an answer to its branches."""

from __future__ import annotations

from halfbyte.runtime.scheduler import SWAP_FROM
from tests.runtime.simulated import PAGE_LEN, Simulation, counts, forked, growing


class TestSwap:
    """Long sequences keep what they computed when they must make room."""

    @staticmethod
    def crowded(swap):
        n_pages = 2 * SWAP_FROM // PAGE_LEN
        it = Simulation(budget=4 * SWAP_FROM, n_pages=n_pages, keep=False, swap=swap)
        long = growing(15, answer=2)
        long = type(long)(
            long.ids[:1].repeat(SWAP_FROM), max_len=2 * SWAP_FROM, page_len=PAGE_LEN, sampler=long.sampler
        )
        other = type(long)(
            long.ids[:1].repeat(SWAP_FROM - 8) + 1, max_len=2 * SWAP_FROM - 8, page_len=PAGE_LEN, sampler=long.sampler
        )
        other.rank = (-1.0, 0)
        it.add(other, long)
        return it, other, long

    def test_pages_go_to_swap_and_come_back(self):
        it, first, second = self.crowded(swap=100)
        while not second.put_back:
            it.step()
        assert second.num_swapped >= SWAP_FROM
        assert len(second.swap) == it.scheduler.swap.used == second.pages_for(second.num_swapped)
        assert it.scheduler.num_swapped == 1
        kept = second.num_swapped
        while second.put_back:
            it.step()
        assert second.num_computed > kept
        assert second.swap == []
        it.run()
        assert (first.num_tokens, second.num_tokens) == (first.max_len, second.max_len)

    def test_a_branch_waits_for_pages_that_are_being_read_back(self):
        it, _, second = self.crowded(swap=100)
        while not second.put_back:
            it.step()
        child = second.fork(SWAP_FROM, max_len=SWAP_FROM + 2, sampler=second.sampler, priority=0, submitted_at=0.0)
        it.add(child)
        while second.put_back:
            plan = it.step()
        assert second.arrival in plan.swaps_in
        assert child.put_back is False
        assert child not in it.scheduler.running
        it.run()
        assert child.num_cached == SWAP_FROM - 1

    def test_a_full_swap_means_computing_again(self):
        it, _, second = self.crowded(swap=3)
        while not second.put_back:
            it.step()
        assert (second.num_swapped, it.scheduler.swap.used) == (0, 0)
        it.run()
        assert second.num_tokens == second.max_len

    def test_what_could_not_be_written_is_computed_again(self):
        it, _, second = self.crowded(swap=100)
        while not second.put_back:
            it.step()
        it.scheduler.forget_swap(second)
        it.scheduler.check_integrity()
        it.run()
        assert second.num_tokens == second.max_len

    def test_a_cancelled_one_frees_its_places(self):
        it, _, second = self.crowded(swap=100)
        while not second.put_back:
            it.step()
        it.scheduler.remove(second)
        assert it.scheduler.swap.used == 0
        it.run()


class TestFork:
    """A branch shares the pages of its origin."""

    def test_branches_of_a_prompt_wait_for_it_and_share_its_pages(self):
        it = Simulation(budget=8, seqs=4, n_pages=8)
        origin = growing(14, answer=3)
        children = [forked(origin, 14) for _ in range(3)]
        it.add(origin, *children)
        assert counts(it.step()) == [8]
        assert counts(it.step()) == [6]
        plan = it.step()
        assert sorted(counts(plan)) == [1, 1, 1, 1]
        assert it.scheduler.pool.num_used == 3 + 4
        assert all(child.pages[:3] == origin.pages[:3] for child in children)
        it.run()
        assert [child.num_cached for child in children] == [13] * 3

    def test_only_the_page_that_is_written_to_is_copied(self):
        it = Simulation()
        origin = growing(6, answer=9)
        it.add(origin)
        it.step()
        child = forked(origin, 7)
        it.add(child)
        plan = it.step()
        assert len(plan.copies) == 1
        assert child.pages[0] == origin.pages[0]
        assert child.pages[1] != origin.pages[1]

    def test_a_branch_from_the_middle_goes_on_from_there(self):
        it = Simulation()
        origin = growing(6, answer=12)
        it.add(origin)
        for token in range(10, 18):
            it.step(token)
        child = forked(origin, 9, answer=4)
        it.add(child)
        it.step(50)
        it.run(token=50)
        assert child.ids[:13].tolist() == [1] * 6 + [10, 11, 12] + [50] * 4

    def test_a_branch_of_what_has_ended_finds_its_whole_pages(self):
        it = Simulation()
        origin = growing(6, answer=3)
        it.add(origin)
        it.run()
        child = forked(origin, 9)
        it.add(child)
        it.run()
        assert child.num_cached == 8
