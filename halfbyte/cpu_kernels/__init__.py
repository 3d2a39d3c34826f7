"""How does this CPU compute? numba compiles, llvmlite loads, cffi calls; numba is imported only to compile."""
