# What the cases of a generated library begin with, behind lib.sh: . ./library.sh

# library CASE [WORD]: runs the case of bin/library, which must go well. A machine without a GPU
# skips the script.
library() {
  output=$(bin/library "$@" 2>&1)
  actual=$?
  case $actual in
    0) ;;
    77) skip "${output#skipped: }" ;;
    *) fail "exit code $actual
\$ bin/library $*
$output" ;;
  esac
}

# libraries CASE...: each of them.
libraries() {
  for name in "$@"; do
    library "$name"
  done
}
