"""NVIDIA targets."""
