"""A sound checkpoint, ways to break it, and what must come of that."""

from __future__ import annotations

import json

import pytest

from halfbyte.errors import HalfbyteError
from halfbyte.tools.convert.conversion import Conversion, ConversionChoices
from tests.tools.convert.tiny_folder import config, tensors, write_safetensors

WEIGHTS = "model.safetensors"
INDEX = "model.safetensors.index.json"
Q = "model.layers.1.self_attn.q_proj.weight"


def refused(folder, kind, match, **choices):
    """It is, and there is no output and no temporary file, neither beside it nor anywhere else."""
    out = folder.parent / "out"
    out.mkdir()
    before = sorted(folder.parent.rglob("*"))
    with pytest.raises(kind, match=match) as caught:
        Conversion(folder, ConversionChoices(**choices)).write(out / "m.gguf")
    assert type(caught.value) is kind
    assert sorted(folder.parent.rglob("*")) == before


def with_config(folder, **changes):
    (folder / "config.json").write_text(json.dumps(config(**changes)))
    return folder


def with_tensors(folder, changes, *left_out):
    kept = {name: given for name, given in (tensors() | changes).items() if name not in left_out}
    write_safetensors(folder / WEIGHTS, kept)
    return folder


def sharded(folder, *left_out):
    """Two shards and an index, which is returned."""
    arrays = tensors()
    names = list(arrays)
    (folder / WEIGHTS).unlink()
    places = {}
    for i, part in enumerate((names[:9], names[9:]), start=1):
        file = f"model-0000{i}-of-00002.safetensors"
        write_safetensors(folder / file, {name: arrays[name] for name in part if name not in left_out})
        places |= dict.fromkeys(part, file)
    (folder / INDEX).write_text(json.dumps({"metadata": {}, "weight_map": places}))
    return places


def index(folder, places):
    (folder / INDEX).write_text(json.dumps({"weight_map": places}))
    return folder


def outcome(folder, out=None):
    """The error that came of it, if any."""
    try:
        conversion = Conversion(folder)
        if out is not None:
            conversion.write(out)
    except HalfbyteError as error:
        return error
    return None
