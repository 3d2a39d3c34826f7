"""A real model: rope, head order, norms and scales cannot be wrong and still give these numbers."""

import numpy as np

from halfbyte.formats import open_gguf
from halfbyte.model import bind
from halfbyte.model.reference import ReferenceExecutable
from tests.model.batches import run_all, whole_prompt_batches

# Ids of a piece of Python source, and llama.cpp's negative log likelihood of each but the first. It rounds activations
# to 8 bits, so single values differ by some tenths; the means agree within 0.4 %.
IDS = [1455, 2758, 15899, 890, 752, 28219, 198, 198, 2017, 31011, 97, 198, 1455, 2688, 387, 23266, 752]
IDS += [2688, 27049, 28, 1955, 198, 1455, 11146, 752, 46076, 28, 25826, 1508, 1116, 198, 48, 42751]
NLL = [15.0518, 5.2554, 0.112, 4.4763, 8.7631, 0.2334, 0.8765, 1.3173, 5.0887, 0.5258, 0.0237, 2.219, 4.8616, 0.0381]
NLL += [0.04, 0.004, 0.1603, 0.001, 1.8295, 4.487, 3.538, 0.6559, 1.3746, 0.0779, 4.1306, 1.8366, 6.36, 1.6126, 2.6898]
NLL += [0.0003, 0.8462, 0.0086]


def test_likelihoods_are_those_of_llama_cpp(smollm2_path):
    model = bind(open_gguf(smollm2_path))
    executable = ReferenceExecutable(model.program, model.weights, n_pages=3)
    logits = run_all(executable, whole_prompt_batches(IDS, 16, [20, 13]), model.spec.n_vocab).astype(np.float64)
    peak = logits.max(axis=1, keepdims=True)
    log_sum = peak[:, 0] + np.log(np.exp(logits - peak).sum(axis=1))
    nll = log_sum[:-1] - logits[np.arange(len(IDS) - 1), IDS[1:]]
    assert abs(nll.mean() / np.mean(NLL) - 1) < 0.01
    assert np.median(np.abs(nll - NLL)) < 0.1
    assert np.abs(nll - NLL).max() < 0.6
