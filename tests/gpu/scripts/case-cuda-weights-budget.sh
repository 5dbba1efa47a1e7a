# Weights that are larger than their budget give what they give without one, call after call.
. ./lib.sh
folder=$(mktemp -d)
trap 'rm -r "$folder"' EXIT
call() {
  expect "$1" env AOTC_WEIGHTS_BUDGET="$2" bin/large_weights --device cuda --x random:seed=3 \
    --repeat 3 "$3" "y=$folder/y.npy" --rtol 0 --atol 0
}
call 0 '' --out
call 0 1G --expect
call 0 5M --expect
call 0 4M --expect
call 4 2M --expect
has 'one kernel reads more weights than their budget of 2097152 bytes has room for'
has 'the least that works is 4194304'
