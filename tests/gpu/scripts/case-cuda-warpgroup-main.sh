# A program whose main checks a warpgroup's gemm: all of 128 x 128 sums, and NumPy's of one of them.
. ./lib.sh
gpu_major
[ "$major" -eq 9 ] || skip "this GPU has compute capability $major"
AOTC_DEVICE=cuda
export AOTC_DEVICE
expect 0 bin/warpgroup_main
[ "$output" = "right: 16384
wrong: 0
-20" ] || fail "got:
$output"
