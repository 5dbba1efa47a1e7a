# Calls are captured into a graph, also as the first use of the library, and replayed.
. ./lib.sh
. ./library.sh
library capture
for mode in global thread-local relaxed; do
  library capture-first $mode
done
AOTC_CHECK=1
export AOTC_CHECK
library capture
for mode in global thread-local relaxed; do
  library capture-first $mode
done
