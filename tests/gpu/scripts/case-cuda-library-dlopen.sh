# A shared library is opened, used and closed 50 times.
. ./lib.sh
. ./library.sh
library lifetimes-dlopen bin/libvectors.so
