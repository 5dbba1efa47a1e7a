# Plain calls of a library: pointers of every kind in every mix, descriptors, ranges that overlap.
. ./lib.sh
. ./library.sh
libraries pointers-mix pointers-registered pointers-host-code pointers-memref pointers-in-place \
  pointers-overlap pointers-empty pointers-sizes
AOTC_CHECK=1
export AOTC_CHECK
libraries pointers-mix pointers-host-code
