# gpu.printf reaches standard output.
. ./lib.sh
expect 0 bin/printing --count 5 --x 2.5 --device cuda
for thread in 0 1 2 3 4; do
  has "thread $thread says 2.500000"
done
lacks 'thread 5'
