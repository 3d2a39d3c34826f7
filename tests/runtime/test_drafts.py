"""Drafts in the schedule: tokens that may come next are computed along."""

from __future__ import annotations

from tests.runtime.simulated import PAGE_LEN, Simulation, counts, growing


class TestDrafts:
    @staticmethod
    def answering(**options):
        it = Simulation(**options)
        sequence = growing(3, answer=12)
        it.add(sequence)
        it.step()
        return it, sequence

    def test_confirmed_drafts_count_as_computed_and_others_do_not(self):
        it, sequence = self.answering()
        sequence.propose([5, 6, 7])
        plan = it.step(token=8, confirmed=2)
        assert (counts(plan), plan.shares[0].num_rows) == ([4], 4)
        assert sequence.ids[: sequence.num_tokens].tolist() == [1, 1, 1, 1, 5, 6, 8]
        assert sequence.num_new == 1
        it.run()

    def test_pages_of_refused_drafts_come_back(self):
        it, sequence = self.answering(budget=12)
        sequence.propose([5] * 9)
        it.step(token=8)
        assert len(sequence.pages) == 1 + (sequence.num_computed > PAGE_LEN)

    def test_drafts_never_put_others_back_nor_take_their_tokens(self):
        it, sequence = self.answering(budget=4)
        others = growing(2, answer=9, token=2), growing(2, answer=9, token=3)
        it.add(*others)
        it.step()
        it.step()
        sequence.propose([5] * 8)
        assert sorted(counts(it.step())) == [1, 1, 2]
        it = Simulation(budget=20, keep=False)
        pair = growing(10, answer=9), growing(11, answer=1, token=2)
        it.add(*pair)
        plan = it.scheduler.schedule()
        it.scheduler.commit(plan)
        pair[0].accept(1)
        pair[0].propose([5] * 8)
        assert counts(it.scheduler.schedule())[0] in (1, 2, 9)
        assert not any(s.put_back for s in pair)

    def test_no_more_are_proposed_than_fit_the_answer(self):
        it, sequence = self.answering()
        sequence.propose([5] * 50)
        assert sequence.num_tokens + sequence.drafts == sequence.max_len - 1
        it.step()
