# An executable with cubins for another chip alone: the GPU that was asked for cannot run it, and
# the message says what was built and what is there. Without asking, the CPU runs it.
. ./lib.sh
gpu_major
if [ "$major" -eq 8 ]; then built=sm_90; else built=sm_80; fi
words='--dim x=1000 --dim y=1000 --dim z=1000'
# shellcheck disable=SC2086  # words they are
expect 3 "bin/vector_add.$built" --device cuda $words
has "$built"
has ", sm_$major"
has 'NVIDIA'
# shellcheck disable=SC2086
expect 0 "bin/vector_add.$built" $words
has 'note: running on the cpu: '
has "$built"
has 'vector_add on cpu'
