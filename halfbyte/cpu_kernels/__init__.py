"""How does this CPU compute? numba compiles, llvmlite loads, ctypes calls; numba is imported only to compile."""
