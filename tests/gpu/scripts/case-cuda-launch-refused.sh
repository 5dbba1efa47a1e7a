# More threads than a block may have: the launch is refused, and the message tells the kernel and
# what was asked of it.
. ./lib.sh
expect 0 bin/faults crowd --threads 1024 --device cuda --print x
expect 4 bin/faults crowd --threads 2000 --device cuda
has "'crowd_kernel'"
has '2000 x 1 x 1'
