# A sum and a product have one right answer: the GPU's file is the CPU's, to the bit.
. ./lib.sh
folder=$(mktemp -d) || fail "no temporary folder"
trap 'rm -rf "$folder"' EXIT
expect 0 bin/vector_add --dim x=5003 --dim y=5003 --dim z=5003 --device cuda --seed 3 \
  --out "z=$folder/z.npy"
expect 0 bin/vector_add --dim x=5003 --dim y=5003 --dim z=5003 --device cpu --seed 3 \
  --expect "z=$folder/z.npy" --rtol 0 --atol 0
has 'all 5003 elements are equal'
