# 8 threads x 100,000 calls: nothing is lost, mixed up or leaked.
. ./lib.sh
. ./library.sh
library soak
