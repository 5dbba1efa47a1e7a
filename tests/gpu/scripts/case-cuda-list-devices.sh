# The GPU has a number, a name and a compute capability; the CPU is there, too.
. ./lib.sh
expect 0 bin/matmul --list-devices
has 'cuda:0'
has 'NVIDIA'
has 'cpu'
expect 0 bin/matmul --list-devices --json
has '"kind": "cuda"'
has '"capability": ['
has '"kind": "cpu"'
