# A library that makes TMA descriptors of what it is given: from sm_90 on.
. ./lib.sh
. ./library.sh
gpu_major
[ "$major" -ge 9 ] || skip "this GPU has compute capability $major"
libraries tiles tiles-capture tiles-misaligned
