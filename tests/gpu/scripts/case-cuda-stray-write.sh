# A kernel that writes far outside of its buffer: exit 4, the message names it, nothing crashes.
. ./lib.sh
expect 0 bin/faults stray --distance 0 --device cuda
far=1099511627776
expect 4 bin/faults stray --distance $far --device cuda
has "'stray_kernel'"
has 'CUDA_ERROR_ILLEGAL_ADDRESS'
lacks 'result'
expect 4 bin/faults stray --distance $far --device cuda --repeat 10
has 'CUDA_ERROR_ILLEGAL_ADDRESS'
