"""Whole models on the CPU device, compared with ONNX Runtime, AOTInductor and eager PyTorch."""
