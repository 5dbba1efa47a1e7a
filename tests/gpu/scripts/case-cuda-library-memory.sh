# Without device memory a call says so; with memory the next one works.
. ./lib.sh
. ./library.sh
library failures-memory
