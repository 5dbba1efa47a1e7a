# --repeat: times that a GPU can have, device time within wall time.
. ./lib.sh

# spread KEY: sets min, median and max of the times under KEY.
spread() {
  rest=${output#*'"repeat":'}
  rest=${rest#*"\"$1\":"}
  for key in median min max; do
    value=${rest#*"\"$key\": "}
    value=${value%%[,
]*}
    case $value in
      '' | *[!0-9.e+-]*) fail "no $key of $1 in:
$output" ;;
    esac
    eval "$key=\$value"
  done
}

expect 0 bin/matmul --device cuda --repeat 20 --warmup 3 --json
has '"repeat": 20'
spread device_ms
device=$median
# 2^30 multiplications and additions: not below 10 microseconds, not above a second.
in_order 0.01 "$min" "$median" "$max" 1000
spread wall_ms
in_order 0.01 "$min" "$median" "$max" 2000
in_order "$device" "$median"
