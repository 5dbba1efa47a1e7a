"""ONNX's numbers of element types (`TensorProto.DataType`). They are repeated here because onnx
must not be imported before a model is loaded."""

from __future__ import annotations

FLOAT, UINT8, INT8, UINT16, INT16, INT32, INT64 = 1, 2, 3, 4, 5, 6, 7
STRING, BOOL, FLOAT16, DOUBLE, UINT32, UINT64 = 8, 9, 10, 11, 12, 13
COMPLEX64, COMPLEX128, BFLOAT16 = 14, 15, 16
FLOAT8E4M3FN, FLOAT8E4M3FNUZ, FLOAT8E5M2, FLOAT8E5M2FNUZ = 17, 18, 19, 20
UINT4, INT4, FLOAT4E2M1, FLOAT8E8M0, UINT2, INT2 = 21, 22, 23, 24, 25, 26

FLOATS = (FLOAT, FLOAT16, DOUBLE, BFLOAT16)
