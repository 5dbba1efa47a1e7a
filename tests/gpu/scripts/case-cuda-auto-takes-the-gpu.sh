# Without a word about devices the GPU it is, in an empty environment as well, and without notes.
. ./lib.sh
for command in 'bin/vector_add' 'env -i bin/vector_add' 'env AOTC_DEVICE=auto bin/vector_add' \
  'env AOTC_DEVICE=cuda bin/vector_add' 'env AOTC_DEVICE=cuda:0 bin/vector_add'; do
  # shellcheck disable=SC2086  # words they are
  expect 0 $command --dim x=1000 --dim y=1000 --dim z=1000
  has 'vector_add on cuda:0 (NVIDIA'
  lacks 'note:'
done
expect 0 env AOTC_DEVICE=cuda bin/vector_add --device cpu --dim x=4 --dim y=4 --dim z=4
has 'vector_add on cpu'
