# AOTC_CHECK=1 names the failing kernel of three, and host pointers where there must be none.
. ./lib.sh
. ./library.sh
libraries failures-check failures-check-async failures-host-pointer
