"""ONNX Runtime: the module's ONNX export, in a process without PyTorch."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from bench.models.engines.engine import Array, Call, Work


class OnnxRuntime:
    suffix = ".onnx"
    is_for_threads = False

    def missing(self) -> str | None:
        names = ("onnx", "onnxscript", "onnxruntime")
        lacking = [name for name in names if find_spec(name) is None]
        return f"{lacking[0]} is not installed" if lacking else None

    def make(self, work: Work, artifact: Path) -> None:
        import torch

        from bench.models.catalogue import make

        module, inputs = make(work.model, work.batch)
        options: dict[str, Any] = {"dynamo": True, "verbose": False, "external_data": False}
        try:
            torch.onnx.export(module, (), artifact, kwargs=inputs, **options)
        except torch.onnx.OnnxExporterError:
            # The exporter decomposes attention with a bias, as T5's, to views that are none.
            if not hasattr(module, "set_attn_implementation"):
                raise
            module.set_attn_implementation("eager")
            torch.onnx.export(module, (), artifact, kwargs=inputs, **options)

    def open(self, work: Work, artifact: Path) -> Call:
        session, feed = open_session(work, artifact)

        def call() -> Sequence[Array]:
            results: Sequence[Array] = session.run(None, feed)
            return results

        return call


def open_session(
    work: Work, artifact: Path, profile: Path | None = None
) -> tuple[Any, dict[str, Array]]:
    """The session and the inputs by its names. `profile` is what the name of the file with its
    profile begins with; without it, none is taken."""
    import onnxruntime  # type: ignore[import-not-found, import-untyped, unused-ignore]

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = work.threads
    options.inter_op_num_threads = 1
    # A thread that spins while it waits would count as CPU time, and disturb the other engines.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    if profile is not None:
        options.enable_profiling = True
        options.profile_file_prefix = str(profile)
    session = onnxruntime.InferenceSession(
        str(artifact), options, providers=["CPUExecutionProvider"]
    )
    arrays = work.inputs()
    names = [one.name for one in session.get_inputs()]
    return session, dict(zip(names, arrays.values(), strict=True))
