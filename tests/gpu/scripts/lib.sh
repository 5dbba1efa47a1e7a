# What case scripts begin with: . ./lib.sh
set -u

# fail TEXT: ends the case.
fail() {
  printf '%s\n' "$*"
  exit 1
}

# skip REASON: ends the case, which counts neither way.
skip() {
  printf '%s\n' "$*"
  exit 77
}

# expect STATUS COMMAND...: runs the command, which must exit with STATUS. What it printed, on
# both streams, is in $output.
expect() {
  expected=$1
  shift
  output=$("$@" 2>&1)
  actual=$?
  [ $actual -eq "$expected" ] || fail "expected exit code $expected, got $actual
\$ $*
$output"
}

# has TEXT, lacks TEXT: whether $output holds TEXT.
has() {
  case $output in
    *"$1"*) ;;
    *) fail "expected '$1' in:
$output" ;;
  esac
}

lacks() {
  case $output in
    *"$1"*) fail "did not expect '$1' in:
$output" ;;
  esac
}

# in_order NUMBER...: each is at most the next.
in_order() {
  printf '%s\n' "$@" | sort -g -C || fail "not in ascending order: $*"
}

# gpu_major: the first GPU's major compute capability.
gpu_major() {
  expect 0 bin/vector_add --list-devices --json
  rest=${output#*'"capability": ['}
  major=${rest%%,*}
  case $major in
    '' | *[!0-9]*) fail "no compute capability in:
$output" ;;
  esac
}
