"""Attributes that several operations of the dialect have."""

from __future__ import annotations

from typing import Any


def dimension_of(ir: Any, operation: Any) -> int:
    return int(ir.IntegerAttr(operation.attributes["dimension"]).value)
