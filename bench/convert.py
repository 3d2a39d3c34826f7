"""How fast a checkpoint becomes a file, and in how much memory: `python -m bench.convert [FOLDER]`.

Writes a made-up bf16 Llama of 1.9 GB in two shards below FOLDER (that of temporary files by default), converts it in a
process of its own for each type, and prints bytes of checkpoint a second, with golden vectors and until the file is on
the disk, beside what the disk takes.
"""

from __future__ import annotations

import json
import os
import struct
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

TYPES = ("f16", "bf16", "q8_0", "q4_k_m")
SIZES = {
    "hidden_size": 2048,
    "intermediate_size": 5632,
    "num_hidden_layers": 18,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "vocab_size": 32000,
    "max_position_embeddings": 4096,
}
ONE = """
import sys, time
from pathlib import Path
from halfbyte.cpu_kernels import threads
from halfbyte.tools.convert.conversion import Conversion, ConversionChoices
start = time.perf_counter()
conversion = Conversion(Path(sys.argv[1]), ConversionChoices(sys.argv[3]))
conversion.write(sys.argv[2], threads=threads.count(None))
seconds = time.perf_counter() - start
# What getrusage says begins with the memory of whoever started this.
peak = next(line for line in open("/proc/self/status") if line.startswith("VmHWM")).split()[1]
print(seconds, int(peak) / 1e3)
"""


def shapes() -> dict[str, tuple[int, ...]]:
    """Every tensor of the model."""
    d, f, v = SIZES["hidden_size"], SIZES["intermediate_size"], SIZES["vocab_size"]
    kv = d // SIZES["num_attention_heads"] * SIZES["num_key_value_heads"]
    found: dict[str, tuple[int, ...]] = {"model.embed_tokens.weight": (v, d), "lm_head.weight": (v, d)}
    for i in range(SIZES["num_hidden_layers"]):
        at = f"model.layers.{i}"
        found |= {
            f"{at}.self_attn.{name}_proj.weight": (n, d) for name, n in (("q", d), ("k", kv), ("v", kv), ("o", d))
        }
        found |= {f"{at}.mlp.{name}_proj.weight": (f, d) for name in ("gate", "up")}
        found |= {f"{at}.mlp.down_proj.weight": (d, f)}
        found |= {f"{at}.{name}_layernorm.weight": (d,) for name in ("input", "post_attention")}
    return found | {"model.norm.weight": (d,)}


def make(folder: Path) -> int:
    """Write the checkpoint; its size in bytes."""
    config = {"architectures": ["LlamaForCausalLM"], "tie_word_embeddings": False, "rms_norm_eps": 1e-5, **SIZES}
    (folder / "config.json").write_text(json.dumps(config))
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    tokenizer.train_from_iterator([], trainers.BpeTrainer(initial_alphabet=alphabet, show_progress=False))
    tokenizer.save(str(folder / "tokenizer.json"))
    names = list(shapes())
    places = {}
    for no, part in enumerate((names[: len(names) // 2], names[len(names) // 2 :]), 1):
        file = f"model-{no:05d}-of-00002.safetensors"
        places |= dict.fromkeys(part, file)
        write_shard(folder / file, {name: shapes()[name] for name in part})
    (folder / "model.safetensors.index.json").write_text(json.dumps({"metadata": {}, "weight_map": places}))
    return sum(path.stat().st_size for path in folder.glob("*.safetensors"))


def write_shard(path: Path, tensors: dict[str, tuple[int, ...]]) -> None:
    """Random weights of the usual size; tensor by tensor."""
    rng, end, header = np.random.default_rng(0), 0, {}
    for name, shape in tensors.items():
        size = 2 * int(np.prod(shape))
        header[name] = {"dtype": "BF16", "shape": shape, "data_offsets": [end, end + size]}
        end += size
    raw = json.dumps(header).encode()
    with path.open("wb") as file:
        file.write(struct.pack("<Q", len(raw)) + raw)
        for shape in tensors.values():
            values = rng.standard_normal(int(np.prod(shape)), np.float32) * np.float32(0.02)
            file.write((values.view(np.uint32) >> 16).astype(np.uint16).tobytes())


def disk_speed(folder: Path) -> float:
    """MB/s of plain writing to the disk, to its end."""
    path, block = folder / "speed", os.urandom(1 << 24)
    start = time.perf_counter()
    with path.open("wb") as file:
        for _ in range(64):
            file.write(block)
        file.flush()
        os.fsync(file.fileno())
    path.unlink()
    return 64 * len(block) / 1e6 / (time.perf_counter() - start)


def main() -> None:
    with tempfile.TemporaryDirectory(dir=sys.argv[1] if len(sys.argv) > 1 else None) as name:
        folder = Path(name)
        total = make(folder)
        print(f"checkpoint {total / 1e9:.2f} GB, disk writes {disk_speed(folder):.0f} MB/s")
        print("| type | seconds | MB/s of checkpoint | peak MB |\n|---|---|---|---|")
        for type in TYPES:
            done = subprocess.run(
                [sys.executable, "-c", ONE, str(folder), str(folder / "out.gguf"), type],
                capture_output=True, text=True, check=True,
            )  # fmt: skip
            seconds, memory = map(float, done.stdout.split())
            print(f"| {type} | {seconds:.1f} | {total / 1e6 / seconds:.0f} | {memory:.0f} |", flush=True)


if __name__ == "__main__":
    main()
