# Two libraries of one module, by prefix, in one program, at once.
. ./lib.sh
. ./library.sh
library two 20000
library two-apart
