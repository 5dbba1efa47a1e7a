# The end without unload is clean: nothing is printed, the exit code is 0.
. ./lib.sh
. ./library.sh
library lifetimes-end
[ -z "$output" ] || fail "expected no output: $output"
