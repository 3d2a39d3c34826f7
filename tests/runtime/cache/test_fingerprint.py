import shutil

import pytest

from halfbyte.formats import open_gguf
from halfbyte.runtime.cache.fingerprint import SAMPLE_BYTES, fingerprint
from tests.model.tiny import make_tiny_gguf

MADE_WITH = {"isa": "avx2", "kv": "f16", "page_len": 16}


def print_of(path, **changes):
    with open_gguf(path) as file:
        return fingerprint(file, **(MADE_WITH | changes))


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return make_tiny_gguf(tmp_path_factory.mktemp("models") / "m.gguf", weights="q8_0", n_ff=256)


def test_a_copy_elsewhere_has_the_same(model, tmp_path):
    copy = shutil.copy(model, tmp_path / "renamed.gguf")
    assert print_of(copy) == print_of(model)
    assert len(print_of(model)) == 16


@pytest.mark.parametrize("change", [{"isa": "avx512"}, {"kv": "q8_0"}, {"page_len": 32}, {"adapter": b"lora"}])
def test_pages_made_otherwise_have_another(model, change):
    assert print_of(model, **change) != print_of(model)


@pytest.mark.parametrize("change", [{"weights": "q4_0"}, {"seed": 1}, {"metadata": {"llama.rope.freq_base": 5e5}}])
def test_another_model_has_another(model, tmp_path, change):
    other = make_tiny_gguf(tmp_path / "m.gguf", **({"weights": "q8_0", "n_ff": 256} | change))
    assert print_of(other) != print_of(model)


def test_the_text_side_of_a_model_may_change(model, tmp_path):
    metadata = {"tokenizer.chat_template": "{{ messages }} and so much more that every tensor lies elsewhere"}
    other = make_tiny_gguf(tmp_path / "m.gguf", weights="q8_0", n_ff=256, metadata=metadata)
    assert print_of(other) == print_of(model)


def test_every_tensor_is_sampled_at_both_ends(model, tmp_path):
    before = print_of(model)
    with open_gguf(model) as file:
        infos = list(file.tensors.values())
    assert max(info.n_bytes for info in infos) > 2 * SAMPLE_BYTES
    copy = tmp_path / "m.gguf"
    sound = model.read_bytes()
    for info in infos:
        for at in (0, min(SAMPLE_BYTES, info.n_bytes) - 1, info.n_bytes - 1):
            damaged = bytearray(sound)
            damaged[info.offset + at] ^= 1
            copy.write_bytes(damaged)
            assert print_of(copy) != before, (info.name, at)


def test_adapters_are_not_taken_for_what_stands_beside_them(model):
    assert print_of(model, kv="f16", adapter=b"") != print_of(model, kv="f1", adapter=b"6")
