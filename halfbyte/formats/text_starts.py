"""`find_text_starts`: where the strings of an array lie, which only a walk from length to length can tell."""

from __future__ import annotations

import struct

import numpy as np
from numpy.typing import NDArray

from .cursor import CUT_SHORT, Cursor

HEADER = 8
_WINDOW = 1 << 18
_WALK = 1 << 10
_LENGTH = struct.Struct("<Q")


def find_text_starts(cursor: Cursor, count: int, what: str) -> NDArray[np.int64]:
    """i64[count + 1]: absolute offset of the first byte of every string; text i ends at `starts[i + 1] - 8`.

    Leaves the cursor behind the last string. Walking 262,144 tokens one by one costs 70 ms, guessing and proving 10:
    a length under 256 is one byte and seven zeros, so all such places in a window are candidates, and those that
    continue each other from a known start are the truth. Where the guess fails a plain walk bridges the gap.
    """
    starts = np.empty(count + 1, np.int64)
    done = 0
    while done < count:
        guessed, position = _guess(cursor, count - done)
        starts[done : done + len(guessed)] = guessed
        done += len(guessed)
        cursor.position = position
        if cursor.left < 0:
            last = int(guessed[-1])
            raise cursor.error(f"string {done - 1} of {what} reaches past the end: {CUT_SHORT}", last - HEADER)
        if len(guessed) < _WALK and done < count:
            walked = _walk(cursor, min(_WALK, count - done), done, what)
            starts[done : done + len(walked)] = walked
            done += len(walked)
    starts[count] = cursor.position + HEADER
    return starts


def _guess(cursor: Cursor, most: int) -> tuple[NDArray[np.int64], int]:
    """Starts of a run of short strings at the cursor, proven to be one, and where it ends; maybe none."""
    base = cursor.position
    window = cursor.data[base : base + _WINDOW]
    if len(window) < HEADER:
        return np.empty(0, np.int64), base
    zero = window == 0
    two = zero[1:-1] & zero[2:]
    four = two[:-2] & two[2:]
    at = np.flatnonzero(four[:-3] & four[3:])[:most]
    if len(at) == 0 or at[0] != 0:
        return np.empty(0, np.int64), base
    ends = at + HEADER + window[at]
    follows = ends[:-1] == at[1:]
    proven = len(at) if follows.all() else int(follows.argmin()) + 1
    return at[:proven] + (base + HEADER), base + int(ends[proven - 1])


def _walk(cursor: Cursor, count: int, first: int, what: str) -> list[int]:
    data, size, position = cursor.data.data, cursor.size, cursor.position
    starts: list[int] = []
    for index in range(first, first + count):
        if size - position < HEADER:
            raise cursor.error(f"string {index} of {what} lies past the end: {CUT_SHORT}", position)
        (length,) = _LENGTH.unpack_from(data, position)
        if length > size - position - HEADER:
            raise cursor.error(f"string {index} of {what} is {length} bytes long: {CUT_SHORT}", position)
        starts.append(position + HEADER)
        position += HEADER + length
    cursor.position = position
    return starts
