# --help, --describe and usage errors open no driver; a run does, and finds all that it needs.
. ./lib.sh
for words in --help --version --describe '--describe --json'; do
  # shellcheck disable=SC2086  # words they are
  expect 0 env LD_DEBUG=files bin/vector_add $words
  has 'libc.so.6'
  lacks 'libcuda'
done
expect 2 env LD_DEBUG=files bin/vector_add --no-such-option 1
lacks 'libcuda'
expect 0 env LD_DEBUG=files bin/vector_add --device cuda --dim x=4 --dim y=4 --dim z=4
has 'libcuda.so.1'
expect 0 env LD_DEBUG=files bin/vector_add --device cpu --dim x=4 --dim y=4 --dim z=4
lacks 'libcuda'
