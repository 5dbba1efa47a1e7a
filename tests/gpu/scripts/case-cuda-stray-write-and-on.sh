# The host part goes on behind the failed kernel, to another launch and to memory that it shares
# with the GPU: still exit 4, and no crash.
. ./lib.sh
expect 0 bin/faults stray_and_on --distance 0 --device cuda --print result0
has 'result0 = 2'
expect 4 bin/faults stray_and_on --distance 1099511627776 --device cuda
has 'stray_and_on_kernel'
has 'CUDA_ERROR_ILLEGAL_ADDRESS'
