import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from halfbyte.runtime.sampling.breakers import Breakers
from halfbyte.runtime.sampling.dry import Repetitions, longest_counted
from halfbyte.runtime.sampling.params import SamplingParams
from tests.runtime.sampling.given import sampler

PIECES = [b"a", b"b", b"c", b"\n", b"x\n", b"=", b">", b"=>"]


def spell(token):
    return PIECES[token]


def slow_lengths(tokens, length, shortest, breakers):
    """Longest repetition that each token would continue, by comparing every place with the end."""
    window = tokens[-length:]
    texts = [text.encode() for text in breakers]
    since = len(window)
    for place in range(len(window)):
        # Bytes that end here may begin in tokens before the window's end alone.
        spelt = b"".join(map(spell, window[: place + 1]))
        if any(spelt.endswith(text) or text in spelt[-len(spell(window[place])) :] for text in texts) or any(
            spelt.rfind(text) + len(text) > len(spelt) - len(spell(window[place])) and text in spelt for text in texts
        ):
            since = len(window) - 1 - place
    found = {}
    for end in range(1, len(window)):
        # window[end] follows a possible repetition that ends at end - 1.
        matched = 0
        while matched < end and window[end - 1 - matched] == window[-1 - matched]:
            matched += 1
        matched = min(matched, since)
        token = window[end]
        if matched >= shortest and not any(text in spell(token) for text in texts):
            found[token] = max(found.get(token, 0), matched)
    return found


TOKENS = st.lists(st.sampled_from([0, 0, 0, 1, 1, 2, 3, 4, 5, 6, 7]), max_size=40)


@given(
    prompt=TOKENS,
    tokens=TOKENS,
    length=st.integers(1, 12),
    shortest=st.integers(1, 3),
    breakers=st.sampled_from([(), ("\n",), ("=>",), ("\n", "=>"), ("b=", "\n")]),
    fork_at=st.integers(0, 40),
)
def test_repetitions_are_those_found_by_comparing_everything(prompt, tokens, length, shortest, breakers, fork_at):
    repetitions = Repetitions(length, np.array(prompt, np.int32), Breakers(breakers, spell), longest=99)
    for place in range(len(tokens) + 1):
        if place == fork_at:
            left, repetitions = repetitions, repetitions.fork()
            left.push(1)
        found = dict(zip(*(part.tolist() for part in repetitions.continued_by(shortest)), strict=True))
        assert found == slow_lengths(prompt + tokens[:place], length, shortest, breakers)
        if place < len(tokens):
            repetitions.push(tokens[place])


@given(prompt=TOKENS, tokens=TOKENS, longest=st.integers(2, 6))
def test_a_prompts_repetitions_are_counted_up_to_a_length(prompt, tokens, longest):
    whole, cut = (Repetitions(30, np.array(prompt, np.int32), Breakers(), most) for most in (99, longest))
    for token in [None, *tokens]:
        if token is not None:
            whole.push(token)
            cut.push(token)
        (ids, lengths), (cut_ids, cut_lengths) = whole.continued_by(2), cut.continued_by(2)
        assert ids.tolist() == cut_ids.tolist()
        assert np.minimum(lengths, longest).tolist() == np.minimum(cut_lengths, longest).tolist()


def test_the_penalty_stops_to_grow_where_llama_cpps_does():
    assert longest_counted(SamplingParams(dry_base=1.75, dry_allowed_length=2)) == 2 + 158
    assert longest_counted(SamplingParams(dry_base=1, dry_allowed_length=3)) == 3
    assert longest_counted(SamplingParams(dry_base=1 + 1e-15)) > 10**8


def row(size=8):
    return np.linspace(1, 0.3, size).astype(np.float32)


def test_a_repetition_is_lowered_by_a_power_of_its_length():
    it = sampler([0, 1, 2, 5, 0, 1], dry_multiplier=0.5, dry_base=3.0, dry_allowed_length=1, logprobs=None)
    logits = row()
    it.sample(logits, 6)
    assert logits - row() == pytest.approx([0, 0, -0.5 * 3, 0, 0, 0, 0, 0])


def test_repetitions_up_to_the_allowed_length_cost_nothing():
    prompt = [0, 1, 2, 5, 0, 1]
    for allowed, changed in ((2, True), (3, False)):
        logits = row()
        sampler(prompt, dry_multiplier=1.0, dry_allowed_length=allowed).sample(logits, 6)
        assert bool((logits != row()).any()) is changed


def test_a_breaker_ends_repetitions_and_is_never_lowered():
    texts = {"dry_multiplier": 1.0, "dry_allowed_length": 1, "spell": spell}
    broken, next_breaks = row(), row()
    sampler([0, 3, 2, 0, 3], **texts).sample(broken, 5)
    sampler([0, 3, 2, 0], **texts).sample(next_breaks, 4)
    assert (broken == row()).all()
    assert (next_breaks == row()).all()
    unbroken = row()
    sampler([0, 3, 2, 0, 3], **texts, dry_sequence_breakers=[]).sample(unbroken, 5)
    assert unbroken[2] < row()[2]


@pytest.mark.parametrize(("last_n", "changed"), [(0, False), (4, False), (6, True), (-1, True)])
def test_dry_looks_at_its_window_alone(last_n, changed):
    logits = row()
    sampler([0, 1, 2, 5, 0, 1], dry_multiplier=1.0, dry_penalty_last_n=last_n).sample(logits, 6)
    assert bool((logits != row()).any()) is changed


def test_a_long_repetition_stays_finite():
    logits = row()
    it = sampler([0] * 2000, capacity=2001, dry_multiplier=1e6, dry_base=1e6, dry_penalty_last_n=-1)
    assert it.sample(logits, 2000) == 1
    assert np.isfinite(logits).all()


@pytest.mark.parametrize(
    ("texts", "tokens", "expected"),
    [(["\n"], [4], True), (["\n"], [0, 4], False), (["=>"], [6, 5], True), (["=>"], [5, 6], False), (["=>"], [7], True),
     (["=>"], [0, 6, 5], False), (["c=>a"], [0, 6, 5, 2], True), (["a", "=>"], [6, 0], False), ([], [3], False)],
)  # fmt: skip
def test_a_breaker_ends_with_the_newest_token(texts, tokens, expected):
    assert Breakers(texts, spell).end_with(np.array(tokens)) is expected


def test_a_token_that_holds_a_breaker_whole():
    breakers = Breakers(["\n", "=>"], spell)
    assert [token for token in range(8) if breakers.within(token)] == [3, 4, 7]
