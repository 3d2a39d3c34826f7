"""What does quantization cost? Perplexity, divergence from a base model, and what two files hold."""

from .differences import differences
from .figures import Divergence, Figures
from .inventory import Inventory, take_inventory
from .measure import measure
from .tensor_error import TensorError, tensor_errors

__all__ = [
    "Divergence",
    "Figures",
    "Inventory",
    "TensorError",
    "differences",
    "measure",
    "take_inventory",
    "tensor_errors",
]
