"""Kernels of others as pipelines: TTGIR of Triton and Gluon."""
