"""`aotc doctor`: what is here, what works with it, and the command that mends what does not."""

from __future__ import annotations

from aotc.doctor.checks import examine
from aotc.health import Check, Report, Status

__all__ = ["Check", "Report", "Status", "examine"]
