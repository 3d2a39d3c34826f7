"""Arguments and options that several commands share."""

from __future__ import annotations

from argparse import Namespace
from typing import TYPE_CHECKING, Any

from .command import Argument, Option

if TYPE_CHECKING:
    from ..runtime.gpu_layers import GpuOptions

MODEL_FORMS = "path of a .gguf file, short name, pypi:PACKAGE[,PACKAGE...], or hf:OWNER/REPO[:FILE_OR_QUANT]"
MODEL = Argument("MODEL", MODEL_FORMS)

CONTEXT = Option("--context", int, "Room for prompt and answer together", "tokens", low=1, default=4096, short="-c")
THREADS = Option(
    "--threads", int, "Threads that compute", "threads", low=1, otherwise="one for each core it may use", short="-t"
)
LOAD = Option("--load", str, "How the model is loaded, see below; may be given several times", "NAME=VALUE", many=True)
LOADING = (CONTEXT, THREADS, LOAD)
MAX_TOKENS = Option("--max-tokens", int, "Longest answer", "tokens", low=1, default=256, short="-n")
TEMPERATURE = Option(
    "--temperature", float, "How freely to choose; 0 takes the likeliest token each time", "ratio", 0, 100, default=0.0
)
TOP_K = Option(
    "--top-k",
    int,
    "Choose among this many likeliest tokens; 0 is all",
    "tokens",
    low=0,
    otherwise="as the model file says, else 40",
)
TOP_P = Option(
    "--top-p",
    float,
    "Choose among the likeliest tokens that together reach this",
    "probability",
    low=0,
    high=1,
    otherwise="as the model file says, else 0.95",
)
SET = Option("--set", str, "Any of the settings below; may be given several times", "NAME=VALUE", many=True)
SEED = Option("--seed", int, "Same seed, same answer", "number", low=0, otherwise="a new one each time")
JSON = Option("--json", bool, "Print one JSON object instead of text")
FILE = Option("--file", str, "Read the text from this file", "path of a UTF-8 text", otherwise="none")
WINDOW = Option("--window", int, "Tokens read together, from an empty context", "tokens", low=8, default=512)
SPECIAL = Option("--special", bool, "Let control tokens spelt out in the text count as tokens")

GPU_LAYERS = Option(
    "--gpu-layers",
    str,
    "The last layers that the GPU computes; auto is as many as fit",
    "number, auto or all",
    otherwise="0",
)
EXPERTS_ON_CPU = Option("--experts-on-cpu", bool, "Leave the experts of these layers to the CPU")
KV_ON_CPU = Option("--kv-on-cpu", bool, "Leave keys and values of these layers, and attention, to the CPU")
GPU = (GPU_LAYERS, EXPERTS_ON_CPU, KV_ON_CPU)

NUMBERS = (TEMPERATURE, TOP_K, TOP_P, SEED)
SAMPLING = (*NUMBERS, SET)


def sampling(values: Namespace) -> dict[str, Any]:
    """The sampling parameters given; those left out are None, which the library fills from the model file.

    Raises `ConfigError` for a wrong setting.
    """
    given = {option.dest: getattr(values, option.dest) for option in NUMBERS}
    if values.set:
        from .settings import setting

        given |= dict(map(setting, values.set))
    return given


def on_gpu(values: Namespace) -> GpuOptions:
    """The keywords of `load` about a GPU."""
    wish = "0" if values.gpu_layers is None else values.gpu_layers.strip()
    layers: Any = int(wish) if wish.removeprefix("-").isdecimal() else wish
    return {"gpu_layers": layers, "experts_on_cpu": values.experts_on_cpu, "kv_on_cpu": values.kv_on_cpu}


def gpu_words(values: Namespace) -> list[str]:
    """The same on the command line of another process."""
    switches = [option.flag for option in GPU if option.kind is bool and getattr(values, option.dest)]
    return switches if values.gpu_layers is None else [f"--gpu-layers={values.gpu_layers}", *switches]


def settings() -> list[tuple[str, str]]:
    """Names and explanations of the parameters that have no option of their own."""
    from .settings import rows

    own = {option.dest for option in NUMBERS}
    return [row for row in rows() if row[0] not in own]
