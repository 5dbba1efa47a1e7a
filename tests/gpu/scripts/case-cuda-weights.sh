# Weights in a file, on the GPU: by a variable, and missed by name.
. ./lib.sh
call="bin/weighted --device cuda --arg x=ones --dim x=130 --dim y=130 --arg i=0"
AOTC_WEIGHTS=bin/weighted.weights
export AOTC_WEIGHTS
expect 0 $call
has ' 285 '
AOTC_WEIGHTS=bin/none.weights
expect 2 $call
has bin/none.weights
