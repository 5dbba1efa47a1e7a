"""aotc's version, which pyproject.toml and CMake's package read from this file."""

__version__ = "0.1.0"
