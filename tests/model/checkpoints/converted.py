"""A checkpoint as a GGUF file without a tokenizer: the converter's own tensors, and the keys of the architecture."""

from __future__ import annotations

from halfbyte.cpu_kernels.encoding import CompiledSearch
from halfbyte.formats import GGUFWriter
from halfbyte.model.archs import ARCHS, CLASSES
from halfbyte.quant import FORMATS
from halfbyte.quant.recipes import recipe_named
from halfbyte.tools.convert.blueprint import check_fit
from halfbyte.tools.convert.checkpoint_folder import CheckpointFolder
from halfbyte.tools.convert.job import write_tensors
from halfbyte.tools.convert.plan import plan_tensors
from halfbyte.tools.convert.quantized import plain_source


def convert(folder):
    """Write `model.gguf` into the folder and return its path."""
    checkpoint = CheckpointFolder(folder)
    arch, config = CLASSES[checkpoint.class_name], checkpoint.config
    description, source = ARCHS[arch].checkpoint, plain_source(checkpoint.tensors(), config.given)
    keys = {f"{arch}.{key}": value for key, value in description.metadata(config).items()}
    metadata = {"general.architecture": arch} | keys
    plan = plan_tensors(description, config, source, recipe_named("f32"), metadata)
    check_fit(plan, config.path)
    path = folder / "model.gguf"
    with GGUFWriter(path, plan.metadata) as writer:
        for name, values in plan.computed.items():
            writer.declare(name, FORMATS["f32"], values.shape[::-1])
        for tensor in plan.tensors:
            writer.declare(tensor.name, tensor.format, tensor.shape.dims[::-1])
        write_tensors(plan, source, writer, CompiledSearch())
    return path
