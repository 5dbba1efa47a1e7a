"""Rewrites of ONNX operators in terms of others that torch-mlir lowers rightly.

`apply` replaces the nodes of a model, and `body` defines the form of a rewrite. Each of the other
modules has the rewrites for a family of operators.
"""
