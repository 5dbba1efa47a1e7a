"""Manifest → the files by which build systems find a library: pkg-config's and CMake's."""

from __future__ import annotations

from aotc.manifest import Manifest
from aotc.toolchain import data_dir
from aotc.toolchain.data import RUNTIME_NAME
from aotc.toolchain.runtime import SYSTEM_LIBRARIES


def generate_package(manifest: Manifest, *, has_shared: bool, shares_runtime: bool) -> list[str]:
    """The texts of NAME.pc, NAMEConfig.cmake and NAMEConfigVersion.cmake."""
    name = manifest.library
    private = [RUNTIME_NAME] if shares_runtime else []
    needed = " ".join(f"-l{library}" for library in (*private, *SYSTEM_LIBRARIES))
    words = {
        "NAME": name,
        "INPUT": manifest.name,
        "VERSION": manifest.aotc,
        # For a static library alone, they are always needed, not only with --static.
        "ALWAYS": "" if has_shared else f" {needed}",
        "PRIVATE": needed if has_shared else "",
        "RUNTIME": f"${{_aotc_root}}/lib/lib{RUNTIME_NAME}.so;" if shares_runtime else "",
    }
    templates = ("library.pc", "Config.cmake", "ConfigVersion.cmake")
    return [_filled(template, words) for template in templates]


def _filled(template: str, words: dict[str, str]) -> str:
    text = (data_dir("templates") / "package" / template).read_text()
    for word, value in words.items():
        text = text.replace(f"@{word}@", value)
    return text
