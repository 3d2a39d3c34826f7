"""Same answer however it is run: logits are equal to the bit."""

import numpy as np
import pytest

from halfbyte.formats import open_gguf
from halfbyte.model import bind
from tests.cpu_kernels.programs import ARCHS, IDS, MIXED, N_PAGES, PAGE_LEN, VOCAB, build, logits_of, poison
from tests.model.batches import run_all, step, whole_prompt_batches
from tests.model.tiny import make_tiny_gguf

OTHERS = (("gpt-oss", "f32"), ("lfm2", "f32"))
"""Experts, sinks and filters."""
FORMATS = {"f32": {"weights": "f32"}, "mixed": MIXED}


@pytest.fixture(scope="module", params=[*((arch, kind) for arch in ARCHS for kind in FORMATS), *OTHERS], ids="-".join)
def runners(request, tmp_path_factory):
    """The same model with one thread and with two."""
    arch, kind = request.param
    path = make_tiny_gguf(tmp_path_factory.mktemp("model") / "model.gguf", arch, **FORMATS[kind])
    model = bind(open_gguf(path))
    made = [build(model, threads=threads) for threads in (1, 2)]
    yield made
    for runner in made:
        runner.close()


@pytest.fixture(scope="module")
def whole(runners):
    logits = logits_of(runners[0])
    assert np.isfinite(logits).all()
    return logits


@pytest.fixture(params=[0, 1], ids=["one thread", "two threads"])
def runner(request, runners):
    poison(runners[request.param])
    return runners[request.param]


def test_whole(runner, whole):
    assert np.array_equal(logits_of(runner), whole)


@pytest.mark.parametrize("seed", range(4))
def test_in_random_chunks(runner, whole, seed):
    rng = np.random.default_rng(seed)
    chunks = rng.integers(1, (4, 9, 20, 40)[seed], len(IDS)).tolist()
    assert np.array_equal(logits_of(runner, chunks), whole)


def test_token_by_token(runner, whole):
    assert np.array_equal(logits_of(runner, [1]), whole)


def test_on_scattered_pages(runner, whole):
    assert np.array_equal(logits_of(runner, [33, 5, 32], pages=[7, 2, 11, 0, 9]), whole)


def test_next_to_other_sequences(runner, whole):
    """Three sequences that share their steps: one whole prompt, one in pieces, one that starts late."""
    first, second, third = [0, 1, 2], [11, 5, 7], [3, 9]
    steps = [
        [(IDS[:20], 0, first), (IDS[:9], 0, second)],
        [(IDS[20:21], 20, first), (IDS[9:30], 9, second), (IDS[:17], 0, third)],
        [(IDS[21:40], 21, first), (IDS[30:31], 30, second), (IDS[17:18], 17, third)],
    ]
    expected = [whole[start : start + len(ids)] for sequences in steps for ids, start, _ in sequences]
    batches = [step(sequences, PAGE_LEN) for sequences in steps]
    assert np.array_equal(run_all(runner, batches, VOCAB), np.concatenate(expected))


def test_many_sequences_of_one_token(runner, whole):
    """Decoding in company: after a prompt each, all go on token by token in one step."""
    pages = [[page] for page in range(N_PAGES)]
    for length, own in enumerate(pages, start=1):
        logits_of_part = run_all(runner, whole_prompt_batches(IDS[:length], PAGE_LEN, [length], own), VOCAB)
        assert np.array_equal(logits_of_part, whole[:length])
    together = step([(IDS[n : n + 1], n, own) for n, own in enumerate(pages, start=1)], PAGE_LEN)
    assert np.array_equal(run_all(runner, [together], VOCAB), whole[1 : N_PAGES + 1])


def test_with_few_asked_for_rows(runner, whole):
    rows = [69, 3, 3, 40]
    batch = step([(IDS, 0, [4, 3, 2, 1, 0])], PAGE_LEN, rows)
    assert np.array_equal(run_all(runner, [batch], VOCAB), whole[rows])


def test_with_no_asked_for_row_until_the_end(runner, whole):
    pages = [0, 1, 2, 3, 4]
    batches = [step([(IDS[:40], 0, pages)], PAGE_LEN, []), step([(IDS[40:], 40, pages)], PAGE_LEN, [29])]
    assert np.array_equal(run_all(runner, batches, VOCAB), whole[69:])


def test_after_a_page_was_copied(runner, whole):
    logits_of(runner, [16], pages=[0, 1, 2, 3, 4])
    for source, target in ((0, 10), (2, 8)):
        runner.copy_page(source, target)
    batch = step([(IDS[48:], 48, [10, 1, 8, 6, 7])], PAGE_LEN)
    assert np.array_equal(run_all(runner, [batch], VOCAB), whole[48:])


def test_on_pages_that_another_executable_wrote(runner, runners, whole):
    """Page by page through bytes, to other places of an executable with another number of threads."""
    pages = [5, 1, 7, 2, 4]
    other = runners[0] if runner is runners[1] else runners[1]
    logits_of(other, [48])
    for source, target in enumerate(pages[:3]):
        data = np.full(other.page_bytes, 255, np.uint8)
        other.read_page(source, data)
        runner.write_page(target, data)
    batch = step([(IDS[48:], 48, pages)], PAGE_LEN)
    assert np.array_equal(run_all(runner, [batch], VOCAB), whole[48:])
