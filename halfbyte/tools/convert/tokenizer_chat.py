"""`chat_templates`: every chat template beside a checkpoint, as metadata."""

from __future__ import annotations

from ...errors import FormatError
from ...formats import Typed
from .tokenizer_files import TokenizerFiles

KEY = "tokenizer.chat_template"
_CONFIG = "tokenizer_config.json"
_FOLDER = "additional_chat_templates"
_DEFAULT = "default"


def chat_templates(files: TokenizerFiles) -> dict[str, object]:
    """Metadata of all of them; files of their own go before what the configuration holds. Raises `FormatError`."""
    found = _configured(files)
    own = files.text("chat_template.jinja")
    if own is None:
        legacy = files.tree("chat_template.json").get("chat_template")
        own = legacy if isinstance(legacy, str) and not found else None
    if own is not None:
        found = {_DEFAULT: own}
    folder = files.folder / _FOLDER
    for path in sorted(folder.glob("*.jinja")) if folder.is_dir() else []:
        text = files.text(f"{_FOLDER}/{path.name}")
        found[path.stem] = text or ""
    metadata: dict[str, object] = {}
    if _DEFAULT in found:
        metadata[KEY] = found.pop(_DEFAULT)
    if found:
        metadata[f"{KEY}s"] = Typed(sorted(found), "string")
        metadata |= {f"{KEY}.{name}": text for name, text in sorted(found.items())}
    return metadata


def _configured(files: TokenizerFiles) -> dict[str, str]:
    given = files.tree(_CONFIG).get("chat_template")
    if given is None:
        return {}
    if isinstance(given, str):
        return {_DEFAULT: given}
    try:
        named = {entry["name"]: entry["template"] for entry in given}
    except (TypeError, KeyError):
        named = {"": None}
    if all(isinstance(part, str) for pair in named.items() for part in pair):
        return named
    raise FormatError("chat_template is neither text nor a list of named texts", path=files.folder / _CONFIG)
