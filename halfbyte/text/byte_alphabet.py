"""How byte-level vocabularies spell bytes: printable Latin-1 as itself, the others as U+0100 and up.

Source: GPT-2's byte table, which every later byte-level vocabulary kept.
"""

from __future__ import annotations

_PRINTABLE = [*range(ord("!"), ord("~") + 1), *range(ord("¡"), ord("¬") + 1), *range(ord("®"), ord("ÿ") + 1)]
_OTHERS = [byte for byte in range(256) if byte not in _PRINTABLE]

BYTE_OF_CHAR = {chr(byte): byte for byte in _PRINTABLE} | {chr(256 + n): byte for n, byte in enumerate(_OTHERS)}


def bytes_of(token: str) -> bytes:
    """Bytes a token stands for; a character outside the alphabet, as in tokens added by hand, stands for itself."""
    try:
        return bytes([BYTE_OF_CHAR[char] for char in token])
    except KeyError:
        return b"".join(
            bytes([BYTE_OF_CHAR[char]]) if char in BYTE_OF_CHAR else char.encode("utf-8", "surrogateescape")
            for char in token
        )
