# 8 threads on 8 streams, as the first use of the library; with and without a check of each launch.
. ./lib.sh
. ./library.sh
library streams-threads
AOTC_CHECK=1
export AOTC_CHECK
library streams-threads
