# A program that was in the LLVM dialect: its exit code says that the kernel ran (the sum of the
# squares of 0 to 999, modulo 97).
. ./lib.sh
AOTC_DEVICE=cuda
export AOTC_DEVICE
expect 19 bin/llvm_dialect
