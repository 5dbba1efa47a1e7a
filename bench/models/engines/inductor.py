"""AOTInductor: what PyTorch compiles ahead of time, by a C++ compiler of the machine."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from bench.models.engines.engine import Call, Work, leaves


class Inductor:
    suffix = ".pt2"
    # The code that it generates has the number of threads in it.
    is_for_threads = True

    def missing(self) -> str | None:
        names = (os.environ.get("CXX"), "g++", "clang++")
        return None if any(name and shutil.which(name) for name in names) else "no C++ compiler"

    def make(self, work: Work, artifact: Path) -> None:
        import torch
        import torch._inductor as inductor

        from bench.models.catalogue import make

        torch.set_num_threads(work.threads)
        module, inputs = make(work.model, work.batch)
        with torch.no_grad():
            program = torch.export.export(module, (), inputs)
            # Weights are constants, as those of aotc and ONNX Runtime, and packed beforehand.
            options = {"freezing": True}
            inductor.aoti_compile_and_package(
                program, package_path=str(artifact), inductor_configs=options
            )

    def open(self, work: Work, artifact: Path) -> Call:
        import torch
        import torch._inductor as inductor

        torch.set_num_threads(work.threads)
        torch.set_grad_enabled(False)
        compiled = inductor.aoti_load_package(str(artifact))
        inputs = work.tensors()
        return lambda: leaves(compiled(**inputs))
