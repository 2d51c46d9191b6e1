"""What tests and benchmarks measure with: kernels of single instructions, proved operands, plans run on real bytes."""
