"""Layers on a GPU: imported only when asked for, and CUDA's libraries only when there is one."""
