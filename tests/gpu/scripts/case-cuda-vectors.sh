# A program of masks, warps, barriers, prints in kernels, scans and bit casts says on the GPU what it
# says on the CPU.
. ./lib.sh
gpu_major
[ "$major" -ge 9 ] || skip "this GPU has compute capability $major"
AOTC_DEVICE=cuda
export AOTC_DEVICE
expect 0 bin/vectors.printed
[ "$output" = "$(cat data/vectors.printed.txt)" ] || fail "got:
$output"
