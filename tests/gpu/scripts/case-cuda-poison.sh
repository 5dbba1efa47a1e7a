# What a kernel does not write stays NaN: the poison does reach the GPU, and is found.
. ./lib.sh
expect 0 bin/types f64 --x 2 --y 3 --total 1 --z poison --dim x=1003 --dim y=1003 --dim z=1003 \
  --dim total=1003 --device cuda --json
has '"nan_count": 0'
lacks '"nan_count": 1'
# Here z is longer than what is computed.
expect 0 bin/types f64 --x 2 --y 3 --total 1 --z poison --dim x=1000 --dim y=1003 --dim z=1003 \
  --dim total=1003 --device cuda --json
has '"nan_count": 3'
