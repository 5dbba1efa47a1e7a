# What upstream's whole lowering leaves: a constant with PTX, and calls of mgpu* functions. The exit
# code is the product that the kernel made.
. ./lib.sh
AOTC_DEVICE=cuda
export AOTC_DEVICE
expect 42 bin/compiled_constant
