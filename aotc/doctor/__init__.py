"""`aotc doctor`: reports what is installed, what works, and the commands that fix what does not."""

from __future__ import annotations

from aotc.doctor.checks import examine
from aotc.health import Check, Report, Status

__all__ = ["Check", "Report", "Status", "examine"]
