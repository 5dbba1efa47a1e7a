# All cases of a library that need no GPU, with host memory on the CPU device.
. ./lib.sh
. ./library.sh
AOTC_DEVICE=cpu
export AOTC_DEVICE
libraries pointers-mix pointers-registered pointers-host-code pointers-memref pointers-in-place \
  pointers-overlap pointers-empty pointers-sizes pointers-refused pointers-refused-first \
  failures-hook lifetimes-fork lifetimes-fork-calling lifetimes-fork-first lifetimes-unload \
  two-apart
library lifetimes-dlopen bin/libvectors.so
library soak 2000
library two 2000
library lifetimes-end
[ -z "$output" ] || fail "expected no output: $output"
