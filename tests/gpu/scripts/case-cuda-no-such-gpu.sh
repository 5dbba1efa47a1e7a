# A GPU that is not there, and a machine whose GPUs are hidden.
. ./lib.sh
words='--dim x=10 --dim y=10 --dim z=10'
# shellcheck disable=SC2086  # words they are
expect 0 bin/vector_add --device cuda:0 $words
# shellcheck disable=SC2086
expect 3 bin/vector_add --device cuda:999 $words
has 'cuda:999'
# shellcheck disable=SC2086
expect 3 env CUDA_VISIBLE_DEVICES= bin/vector_add --device cuda $words
# shellcheck disable=SC2086
expect 0 env CUDA_VISIBLE_DEVICES= bin/vector_add $words
has 'note: running on the cpu: '
has 'vector_add on cpu'
