"""ONNX's own node tests: each is computed rightly, or refused by the operator's name."""

from __future__ import annotations

import multiprocessing
import random
from collections.abc import Iterator
from functools import cache
from typing import Any

import pytest

pytest.importorskip("onnx", reason="onnx is not installed: pip install 'aotc[onnx]'")

from frontends.onnx_nodes import Worker, check_apart, has_tensors_alone, node_tests

# What torch-mlir alone has wrong or not at all, or crashes or hangs on; in the form of models.
RIGHT = [
    ("test_affine_grid_2d", "same"),
    ("test_attention_4d_gqa", "same"),
    ("test_basic_deform_conv_with_padding", "same"),
    ("test_bitcast_float32_to_int32", "same"),
    ("test_bitshift_left_int32_shift_ge_width", "same"),
    ("test_bitshift_right_int32_negative_shift", "same"),
    ("test_bitshift_right_uint64", "same"),
    ("test_cast_FLOAT_to_FLOAT8E4M3FN", "same"),
    ("test_cast_FLOAT_to_INT4", "same"),
    ("test_col2im", "same"),
    ("test_col2im_strides", "same"),
    ("test_convinteger_with_padding", "same"),
    ("test_convtranspose_autopad_same", "same"),
    ("test_cumsum_2d_negative_axis", "same"),
    ("test_dequantizelinear_axis", "constants"),
    ("test_det_nd", "same"),
    ("test_div_uint16", "same"),
    ("test_div_uint64", "same"),
    ("test_einsum_scalar", "same"),
    ("test_dequantizelinear_blocked", "same"),
    ("test_dft_axis", "same"),
    ("test_gridsample_nearest", "same"),
    ("test_l2normalization_axis_0", "same"),
    ("test_lpnormalization_default", "same"),
    ("test_lstm_reverse", "same"),
    ("test_maxpool_with_argmax_2d_precomputed_strides", "same"),
    ("test_mvn", "same"),
    ("test_nesterov_momentum", "same"),
    ("test_nllloss_NCd1_weight_ii", "same"),
    ("test_nonmaxsuppression_two_classes", "same"),
    ("test_qlinearmatmul_3D_uint8_float32", "same"),
    ("test_quantizelinear_axis", "constants"),
    ("test_quantizelinear_uint4", "same"),
    ("test_reduce_sum_keepdims_example", "same"),
    ("test_reshape_allowzero_reordered", "constants"),
    ("test_reshape_allowzero_reordered", "same"),
    ("test_resize_downsample_scales_cubic_antialias", "same"),
    ("test_resize_downsample_scales_linear_align_corners", "constants"),
    ("test_rms_normalization_2d_axis0", "same"),
    ("test_roialign_aligned_true", "same"),
    ("test_sce_mean_weight", "same"),
    ("test_scatter_elements_with_duplicate_indices", "same"),
    ("test_slice_neg_steps", "constants"),
    ("test_slice_neg_steps", "same"),
    ("test_spacetodepth_crd_mode_example", "same"),
    ("test_stft", "same"),
    ("test_split_variable_parts_2d_opset18", "same"),
    ("test_top_k", "same"),
    ("test_wrap_pad", "constants"),
]
REFUSED = [
    ("test_image_decoder_decode_png_rgb", "same", "onnx.ImageDecoder: torch-mlir has no lowering"),
    ("test_lstm_with_peepholes", "same", "onnx.LSTM: peepholes"),
    ("test_reduce_sum_keepdims_example", "any", "onnx.ReduceSum: axes that are known at run"),
    ("test_unique_length_1", "same", "onnx.Unique: "),
    ("test_scan_sum", "same", "onnx.Scan: the batch of opset 8"),
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
# Of those with tensors alone, of which more than nine in ten pass.
TENSORS = 24


@pytest.fixture(scope="module")
def worker() -> Iterator[Worker]:
    one = Worker()
    yield one
    one.close()


@cache
def _cases() -> dict[str, Any]:
    return {case.name: case for case in node_tests()}


def test_a_worker_that_does_not_start(monkeypatch: pytest.MonkeyPatch) -> None:
    """Why it does not is what is raised, and nothing is left to end."""

    def fail(process: Any) -> None:
        raise OSError("no more processes")

    monkeypatch.setattr(multiprocessing.process.BaseProcess, "start", fail)
    with pytest.raises(OSError, match="no more processes"):
        check_apart(_cases()["test_relu"])


@pytest.mark.parametrize(("name", "form"), RIGHT)
def test_what_has_a_lowering_of_its_own(worker: Worker, name: str, form: str) -> None:
    """What torch-mlir has wrong is computed as ONNX says."""
    outcome = worker.check(_cases()[name], form)
    assert outcome.kind == "passed", outcome.text


@pytest.mark.parametrize(("name", "form", "message"), REFUSED)
def test_what_has_no_lowering(worker: Worker, name: str, form: str, message: str) -> None:
    """What nobody has right is refused before the import, by name."""
    outcome = worker.check(_cases()[name], form)
    assert outcome.kind == "refused", outcome.text
    assert message in outcome.text


@pytest.mark.parametrize("form", ["same", "any", "constants", "both"])
@pytest.mark.parametrize("name", SIBLINGS)
def test_a_sibling_is_right_or_refused(worker: Worker, name: str, form: str) -> None:
    outcome = worker.check(_cases()[name], form)
    assert outcome.is_good, outcome.text


@pytest.mark.parametrize("form", ["same", "any", "constants", "both"])
def test_a_sample_is_right_or_refused(worker: Worker, form: str) -> None:
    """None of a sample of the tests is wrong, crashes or does not end: the same ones each time.
    onnx_nodes.py checks all."""
    cases = list(_cases().values())
    outcomes = [worker.check(case, form) for case in random.Random(form).sample(cases, SAMPLE)]
    assert [outcome for outcome in outcomes if not outcome.is_good] == []


def test_a_sample_of_tensors_is_right(worker: Worker) -> None:
    """More than nine in ten of the tests with tensors alone have a lowering, and its results are
    ONNX's; the others are refused by name."""
    cases = [case for case in _cases().values() if has_tensors_alone(case)]
    chosen = random.Random(0).sample(cases, TENSORS)
    outcomes = [worker.check(case, "same") for case in chosen]
    assert [outcome for outcome in outcomes if not outcome.is_good] == []
    passed = [outcome for outcome in outcomes if outcome.kind == "passed"]
    assert len(passed) > 0.9 * TENSORS
