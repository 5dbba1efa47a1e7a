"""`kernel_name(a, x, y)`: y = a * x + y, in place.

The kernel is built when this module is imported; aotc finds it in its cache if nothing has changed.
"""

from pathlib import Path

import aotc

_HERE = Path(__file__).parent

_package = aotc.build(_HERE / "kernel_name.mlir", emit="shared", out=f"{_HERE / 'build'}/")
kernel_name = aotc.load(_package.path).kernel_name
