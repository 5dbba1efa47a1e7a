"""Attention as one kernel, against PyTorch's."""
