"""What the outlined module says to `aotc.host`, by name."""

from __future__ import annotations

# An attribute of functions: all that the function enqueues goes to one stream.
ONE_STREAM = "aotc.one_stream"
# A function without a body: its call waits for the calling function's stream.
WAIT = "aotc_wait"
# The device's copy of constant NAME: a memref.global without a value.
DEVICE_COPY = "aotc_device_"
# Its attribute that names the constant.
COPY_OF = "aotc.copy_of"
