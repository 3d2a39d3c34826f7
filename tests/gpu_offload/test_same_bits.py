"""Same answer however few new tokens come: logits are equal to the bit.

Of steps in which a sequence has at most `FEW_TOKENS` new tokens. Longer parts of prompts are multiplied in another way,
but what is next to them is not.
"""

import numpy as np
import pytest

from halfbyte.formats import open_gguf
from halfbyte.gpu_offload.groups import FEW_TOKENS
from halfbyte.model import bind
from tests.cpu_kernels.programs import IDS, N_PAGES, PAGE_LEN, VOCAB, logits_of
from tests.gpu_offload.programs import build, poison
from tests.model.batches import run_all, step, whole_prompt_batches
from tests.model.tiny import make_tiny_gguf

FORMATS = {"attn_v": "q8_0", "attn_output": "q5_0", "ffn_down": "iq4_nl", "output": "f16"}
MODELS = {
    "llama": {"weights": "q4_0", "formats": FORMATS},
    "gemma3": {"weights": "q8_0"},
    "gpt-oss": {"weights": "mxfp4"},
    "lfm2": {"weights": "q8_0"},
}


@pytest.fixture(scope="module", params=MODELS)
def runner(request, device, tmp_path_factory):
    path = make_tiny_gguf(
        tmp_path_factory.mktemp("model") / "model.gguf", request.param, n_layers=2, **MODELS[request.param]
    )
    made = build(device, bind(open_gguf(path)))
    yield made
    made.close()


@pytest.fixture(scope="module")
def whole(runner):
    logits = logits_of(runner, [FEW_TOKENS])
    assert np.isfinite(logits).all()
    return logits


@pytest.fixture(autouse=True)
def _poisoned(runner, whole):
    poison(runner)


@pytest.mark.parametrize("chunks", [[1], [2, 15, 7, 3]], ids=str)
def test_in_parts(runner, whole, chunks):
    assert np.array_equal(logits_of(runner, chunks), whole)


def test_on_scattered_pages(runner, whole):
    assert np.array_equal(logits_of(runner, [12, 5, 16], pages=[7, 2, 11, 0, 9]), whole)


def test_next_to_other_sequences(runner, whole):
    """Three sequences that share their steps, which are as large as three sizes of graphs."""
    first, second, third = [0, 1, 2], [11, 5, 7], [3, 9]
    steps = [
        [(IDS[:16], 0, first), (IDS[:9], 0, second)],
        [(IDS[16:17], 16, first), (IDS[9:24], 9, second), (IDS[:16], 0, third)],
        [(IDS[17:33], 17, first), (IDS[24:25], 24, second), (IDS[16:18], 16, third)],
        [(IDS[33:34], 33, first), (IDS[25:26], 25, second), (IDS[18:19], 18, third)],
    ]
    expected = [whole[start : start + len(ids)] for sequences in steps for ids, start, _ in sequences]
    batches = [step(sequences, PAGE_LEN) for sequences in steps]
    assert np.array_equal(run_all(runner, batches, VOCAB), np.concatenate(expected))


def test_next_to_a_long_prompt(runner, whole):
    """Which is multiplied in another way, before or behind."""
    logits_of(runner, [16], pages=[0, 1, 2, 3, 4])
    for few in (0, 1):
        parts = [(IDS[64:66], 64, [0, 1, 2, 3, 4]), (IDS[:40], 0, [5, 6, 7])]
        sequences = parts if few == 0 else parts[::-1]
        logits = run_all(runner, [step(sequences, PAGE_LEN)], VOCAB)
        assert np.array_equal(logits[:2] if few == 0 else logits[40:], whole[64:66])


def test_many_sequences_of_one_token(runner, whole):
    pages = [[page] for page in range(N_PAGES)]
    for length, own in enumerate(pages, start=1):
        part = run_all(runner, whole_prompt_batches(IDS[:length], PAGE_LEN, [length], own), VOCAB)
        assert np.array_equal(part, whole[:length])
    together = step([(IDS[n : n + 1], n, own) for n, own in enumerate(pages, start=1)], PAGE_LEN)
    assert np.array_equal(run_all(runner, [together], VOCAB), whole[1 : N_PAGES + 1])


def test_with_few_asked_for_rows(runner, whole):
    rows = [15, 3, 3, 9]
    batch = step([(IDS[:16], 0, [4])], PAGE_LEN, rows)
    assert np.array_equal(run_all(runner, [batch], VOCAB), whole[rows])


def test_with_no_asked_for_row_until_the_end(runner, whole):
    pages = [0, 1, 2, 3, 4]
    batches = [step([(IDS[:16], 0, pages)], PAGE_LEN, []), step([(IDS[16:32], 16, pages)], PAGE_LEN, [15])]
    assert np.array_equal(run_all(runner, batches, VOCAB), whole[31:32])


def test_traced(runner, whole):
    """Kernel by kernel, not as a graph."""
    runner.trace(True)
    logits = logits_of(runner, [9])
    runner.trace(False)
    assert np.array_equal(logits, whole)
    assert runner.spans()


def test_after_a_page_was_copied(runner, whole):
    logits_of(runner, [16], pages=[0, 1, 2, 3, 4])
    for source, target in ((0, 10), (2, 8)):
        runner.copy_page(source, target)
    batch = step([(IDS[48:64], 48, [10, 1, 8, 6, 7])], PAGE_LEN)
    assert np.array_equal(run_all(runner, [batch], VOCAB), whole[48:64])


def test_on_pages_that_were_read_and_written(runner, whole):
    logits_of(runner, [16], pages=[0, 1, 2, 3, 4])
    data = np.full((3, runner.page_bytes), 255, np.uint8)
    for page in range(3):
        runner.read_page(page, data[page])
    for page, target in enumerate((11, 5, 9)):
        runner.write_page(target, data[page])
    batch = step([(IDS[48:64], 48, [11, 5, 9, 3])], PAGE_LEN)
    assert np.array_equal(run_all(runner, [batch], VOCAB), whole[48:64])
