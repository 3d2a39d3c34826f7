"""A real model through the converter: the same ids, and the likelihoods that it had; beside llama.cpp where it is.

HALFBYTE_PEER_PYTHON names a Python that has llama-cpp-python; without it that part is left out.
"""

import json
import os
import subprocess

import numpy as np
import pytest

import halfbyte
from halfbyte.tools.convert.conversion import Conversion, ConversionChoices
from tests.tools.convert.real_checkpoint import rebuild

TEXT = """The lighthouse keeper counted the steps each morning, though she had known their number for thirty years.
There were two hundred and twelve of them, worn in the middle like old spoons. At the top she cleaned the glass, wound
the clock, and wrote the weather into a book nobody would read: wind from the west, sea grey, three boats before noon.

In 1987 a young man came to replace the lamp with one that needed no keeper. He was polite about it. He asked whether
she would miss the work, and she said that work does not mind being missed; it is the mornings that do. They drank tea
from tin cups. Before he left he counted the steps as well, and got two hundred and eleven.

def steps(tower):
    total = 0
    for flight in tower.flights:
        total += flight.count
    return total

She never told him which of them was wrong."""
PEER = """
import json, sys
import numpy as np
from llama_cpp import Llama
path, text = sys.argv[1], sys.stdin.read()
model = Llama(path, n_ctx=512, n_batch=512, logits_all=True, n_threads=2, verbose=False)
ids = model.tokenize(text.encode(), add_bos=False, special=True)
model.eval(ids)
logits = np.array(model.scores[: len(ids) - 1], dtype=np.float64)
top = logits.max(axis=1)
total = top + np.log(np.exp(logits - top[:, None]).sum(axis=1))
print(json.dumps({"ids": ids, "nll": float((total - logits[np.arange(len(ids) - 1), ids[1:]]).mean())}))
"""


@pytest.fixture(scope="module")
def converted(smollm2_path, tmp_path_factory):
    folder = rebuild(smollm2_path, tmp_path_factory.mktemp("smollm2"))
    out = folder / "smollm2-f16.gguf"
    Conversion(folder, ConversionChoices("f16")).write(out, threads=2)
    return out


def scored(path, **options):
    with halfbyte.load(path, context=512, **options) as llm:
        ids = llm.tokenize(TEXT)
        return list(ids), float(np.log(llm.score(ids).perplexity))


def test_a_real_model_comes_back_as_it_was(smollm2_path, converted):
    """Rounding its weights to bf16 once more moves the mean likelihood by 0.0013 nats."""
    ids, nll = scored(converted, check=True)
    before, original = scored(smollm2_path)
    assert ids == before
    assert nll == pytest.approx(original, abs=0.005)


@pytest.mark.skipif("HALFBYTE_PEER_PYTHON" not in os.environ, reason="HALFBYTE_PEER_PYTHON is not set")
def test_llama_cpp_reads_the_same_ids_and_likelihoods(converted):
    ids, nll = scored(converted)
    command = [os.environ["HALFBYTE_PEER_PYTHON"], "-c", PEER, str(converted)]
    peer = json.loads(subprocess.run(command, input=TEXT, capture_output=True, text=True, check=True).stdout)
    assert ids == peer["ids"]
    assert np.exp(nll) == pytest.approx(np.exp(peer["nll"]), rel=0.005)
