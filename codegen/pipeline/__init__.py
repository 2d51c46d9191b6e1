"""Kernels from proved pipelines: the text of roles, barriers and copies, and its synchronisation read back."""
