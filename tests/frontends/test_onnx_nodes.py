"""ONNX's own node tests: each is computed rightly, or refused by the operator's name."""

from __future__ import annotations

import random
from functools import cache
from typing import Any

import pytest

pytest.importorskip("onnx", reason="onnx is not installed: pip install 'aotc[onnx]'")

from frontends.onnx_nodes import check_apart, node_tests

# What torch-mlir alone has wrong, or crashes or hangs on; in the form that models have it in.
RIGHT = [
    ("test_bitshift_left_int32_shift_ge_width", "same"),
    ("test_bitshift_right_int32_negative_shift", "same"),
    ("test_dequantizelinear_axis", "constants"),
    ("test_l2normalization_axis_0", "same"),
    ("test_lpnormalization_default", "same"),
    ("test_mvn", "same"),
    ("test_qlinearmatmul_3D_uint8_float32", "same"),
    ("test_quantizelinear_axis", "constants"),
    ("test_sce_mean_weight", "same"),
    ("test_slice_neg_steps", "constants"),
    ("test_spacetodepth_crd_mode_example", "same"),
    ("test_attention_4d_gqa", "same"),
]
REFUSED = [
    ("test_det_2d", "same", "onnx.Det: determinants have no lowering"),
    ("test_einsum_scalar", "same", "onnx.Einsum: equations without a dimension"),
    ("test_gridsample_nearest", "same", "onnx.GridSample: samples outside"),
    ("test_lstm_with_peepholes", "same", "onnx.LSTM: peepholes"),
    ("test_quantizelinear_uint4", "same", "onnx.QuantizeLinear: 'y_zero_point' has elements of"),
    ("test_reduce_sum_keepdims_example", "same", "onnx.ReduceSum: axes that are known at run"),
    ("test_reshape_allowzero_reordered", "constants", "onnx.Reshape: allowzero"),
    (
        "test_resize_downsample_scales_linear_align_corners",
        "constants",
        "onnx.Resize: align_corners with scales",
    ),
    ("test_scan_sum", "same", "onnx.Scan: the batch of opset 8"),
    ("test_wrap_pad", "constants", "onnx.Pad: mode 'wrap'"),
]
# Siblings of what was wrong: in every form.
SIBLINGS = [
    "test_gridsample_bicubic",
    "test_gridsample_bilinear",
    "test_quantizelinear_int16",
    "test_quantizelinear_int4",
    "test_quantizelinear_uint16",
    "test_resize_downsample_sizes_cubic",
    "test_resize_upsample_scales_cubic",
    "test_resize_upsample_scales_cubic_asymmetric",
    "test_slice_start_out_of_bounds",
    "test_cumsum_2d_axis_1",
    "test_scatter_elements_with_duplicate_indices",
    "test_scatternd_add",
    "test_top_k",
    "test_top_k_smallest",
]
SAMPLE = 8


@cache
def _cases() -> dict[str, Any]:
    return {case.name: case for case in node_tests()}


@pytest.mark.parametrize(("name", "form"), RIGHT)
def test_what_has_a_lowering_of_its_own(name: str, form: str) -> None:
    """What torch-mlir has wrong is computed as ONNX says."""
    outcome = check_apart(_cases()[name], form)
    assert outcome.kind == "passed", outcome.text


@pytest.mark.parametrize(("name", "form", "message"), REFUSED)
def test_what_has_no_lowering(name: str, form: str, message: str) -> None:
    """What nobody has right is refused before the import, by name."""
    outcome = check_apart(_cases()[name], form)
    assert outcome.kind == "refused", outcome.text
    assert message in outcome.text


@pytest.mark.parametrize("form", ["same", "any", "constants", "both"])
@pytest.mark.parametrize("name", SIBLINGS)
def test_a_sibling_is_right_or_refused(name: str, form: str) -> None:
    outcome = check_apart(_cases()[name], form)
    assert outcome.is_good, outcome.text


@pytest.mark.parametrize("form", ["same", "any", "constants", "both"])
def test_a_sample_is_right_or_refused(form: str) -> None:
    """None of a sample of the tests is wrong, crashes or does not end: the same ones each time.
    onnx_nodes.py checks all."""
    cases = list(_cases().values())
    outcomes = [check_apart(case, form) for case in random.Random(form).sample(cases, SAMPLE)]
    assert [outcome for outcome in outcomes if not outcome.is_good] == []
