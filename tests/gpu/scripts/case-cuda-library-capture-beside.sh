# First calls on one thread, while another captures in the mode that forbids most.
. ./lib.sh
. ./library.sh
libraries capture-beside capture-beside-plain
