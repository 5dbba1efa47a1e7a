"""How long a cold build takes: `aotc build` against what an expert types, and against nvcc."""
