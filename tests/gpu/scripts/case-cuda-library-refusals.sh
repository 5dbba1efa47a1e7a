# What cannot be is refused with the name of the argument, and nothing is launched.
. ./lib.sh
. ./library.sh
libraries pointers-refused pointers-refused-first
AOTC_CHECK=1
export AOTC_CHECK
library pointers-refused
