# The comparison can fail: another seed's inputs do not give the expected result.
. ./lib.sh
expect 1 bin/block_sums --device cuda --x random:seed=123 \
  --expect sums=data/block_sums.expect.sums.npy --rtol 1e-5
has "'sums' differs from data/block_sums.expect.sums.npy in"
