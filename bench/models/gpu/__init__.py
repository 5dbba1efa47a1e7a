"""Whole models on a GPU, beside eager PyTorch and torch.compile: a folder for another machine."""
