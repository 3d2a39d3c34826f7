"""Chat templates for files that bring none, by what their vocabulary or architecture shows."""

from __future__ import annotations

from collections.abc import Container

CHATML = """\
{%- for message in messages -%}
{{ '<|im_start|>' + message.role + '\\n' + message.content + '<|im_end|>\\n' }}
{%- endfor -%}
{%- if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif -%}
"""

LLAMA3 = """\
{{- bos_token -}}
{%- for message in messages -%}
{{ '<|start_header_id|>' + message.role + '<|end_header_id|>\\n\\n' + message.content | trim + '<|eot_id|>' }}
{%- endfor -%}
{%- if add_generation_prompt %}{{ '<|start_header_id|>assistant<|end_header_id|>\\n\\n' }}{% endif -%}
"""

GEMMA = """\
{{- bos_token -}}
{%- set ns = namespace(system='') -%}
{%- for message in messages -%}
{%- if message.role == 'system' -%}
{%- set ns.system = ns.system + message.content | trim + '\\n\\n' -%}
{%- else -%}
{{ '<start_of_turn>' + ('model' if message.role == 'assistant' else message.role) + '\\n' }}
{{- ns.system + message.content | trim + '<end_of_turn>\\n' }}
{%- set ns.system = '' -%}
{%- endif -%}
{%- endfor -%}
{%- if add_generation_prompt %}{{ '<start_of_turn>model\\n' }}{% endif -%}
"""

FALLBACKS = {"gemma": GEMMA, "llama3": LLAMA3, "chatml": CHATML}
"""A Gemma turn has no system role: what it says goes before the next turn's text."""


def choose_fallback(architecture: str, tokens: Container[str]) -> str:
    """A name in `FALLBACKS`."""
    if architecture.startswith("gemma") or "<start_of_turn>" in tokens:
        return "gemma"
    if "<|start_header_id|>" in tokens:
        return "llama3"
    return "chatml"
