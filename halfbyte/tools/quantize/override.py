"""`Override`: a format asked for by a pattern of tensor names, and a mix of formats spelt as such patterns."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Self

from ...errors import ConfigError, UnsupportedError
from ...quant import FORMATS, BlockFormat

_IN_LAYER = re.compile(r"blk\.(\d+)(\..+)")


@dataclass(frozen=True)
class Override:
    """Tensors whose name has `pattern` somewhere get `format`."""

    pattern: re.Pattern[str]
    format: BlockFormat

    @classmethod
    def parse(cls, text: str) -> Self:
        """From `REGEX=FORMAT`; raises `ConfigError` that says which half is wrong."""
        pattern, equals, name = text.rpartition("=")
        if not equals or not pattern:
            raise ConfigError(f"--type {text!r} is not REGEX=FORMAT, as in 'ffn_down=q6_k'", key="type")
        try:
            found = cls(re.compile(pattern), FORMATS[name.strip().lower()])
        except re.error as error:
            raise ConfigError(f"--type {text!r}: {pattern!r} is no regular expression: {error}", key="type") from None
        except UnsupportedError as error:
            raise ConfigError(f"--type {text!r}: {error}", key="type") from None
        if found.format.encoder is None and found.format.encode_blocks is None:
            raise ConfigError(f"--type {text!r}: {found.format.name} holds no weights", key="type")
        return found

    def __str__(self) -> str:
        return f"{self.pattern.pattern}={self.format.name}"


def format_of(name: str, overrides: Iterable[Override]) -> BlockFormat | None:
    """What the first override that fits says."""
    return next((each.format for each in overrides if each.pattern.search(name)), None)


def spell(formats: Mapping[str, BlockFormat]) -> tuple[Override, ...]:
    """The shortest list we know that gives each tensor its format: exceptions by layer first, then what is usual."""
    kinds: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for name, format in formats.items():
        found = _IN_LAYER.fullmatch(name)
        kind, layer = (found[2], found[1]) if found else (name, "")
        kinds[kind][format.name].append(layer)
    special, usual = [], []
    for kind, by_format in kinds.items():
        counts = Counter({name: len(layers) for name, layers in by_format.items()})
        most = counts.most_common(1)[0][0]
        # The dot in front keeps `.attn_q` from meaning `.x_attn_q`; a name outside the layers is spelt whole.
        usual.append(Override(re.compile(f"{'' if kind.startswith('.') else '^'}{re.escape(kind)}"), FORMATS[most]))
        for name, layers in by_format.items():
            if name != most:
                special.append(Override(re.compile(rf"blk\.({'|'.join(layers)}){re.escape(kind)}"), FORMATS[name]))
    return (*special, *usual)
