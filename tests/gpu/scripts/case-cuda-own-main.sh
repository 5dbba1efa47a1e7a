# A module's own main is the program: its exit code says that the kernel ran (the sum of the
# squares of 0 to 999, modulo 97), plus one for each argument.
. ./lib.sh
AOTC_DEVICE=cuda
export AOTC_DEVICE
expect 19 bin/own_main
expect $((19 + 2)) bin/own_main --help x
