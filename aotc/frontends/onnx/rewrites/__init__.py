"""Operators of ONNX in terms of others, which torch-mlir has right.

`apply` replaces the nodes of a model, `body` has the form in which the rewrites are written; the
other modules have them, each for a family of operators.
"""
