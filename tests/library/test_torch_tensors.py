"""PyTorch's tensors as arguments: what their own methods say is what DLPack says."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed: pip install 'aotc[torch]'")

from aotc.errors import InputError  # noqa: E402
from aotc.library.arrays import _of_dlpack, _of_torch, array_of  # noqa: E402

TYPES = [
    *(torch.float16, torch.bfloat16, torch.float32, torch.float64, torch.bool),
    *(torch.int8, torch.int16, torch.int32, torch.int64, torch.uint8, torch.complex64),
]


@pytest.mark.parametrize("dtype", TYPES, ids=str)
def test_what_a_tensor_says(dtype: Any) -> None:
    whole = torch.zeros(4, 6, dtype=dtype)
    for tensor in (whole, whole.T, whole[1:, ::2], whole[0, 0], whole[:0]):
        found = _of_torch(tensor, None)
        assert found is not None
        assert found[:5] == _of_dlpack(tensor, None)[:5]


@pytest.mark.parametrize(
    ("why", "tensor"),
    [
        ("its gradient would be lost", torch.zeros(3, requires_grad=True)),
        ("a weight's, too", torch.nn.Parameter(torch.zeros(3))),
        ("its elements are to be conjugated", torch.zeros(3, dtype=torch.complex64).conj()),
        ("it is sparse", torch.zeros(3, 3).to_sparse()),
        ("it has no memory", torch.zeros(3, device="meta")),
    ],
)
def test_what_is_refused(why: str, tensor: Any) -> None:
    with pytest.raises(InputError):
        array_of(tensor, None)
