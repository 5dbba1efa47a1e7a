"""Models that people have, unmodified and small: built by aotc, and compared with PyTorch."""
