# Stray writes: the kernel is named, later calls fail and nothing crashes; the hook hears of it.
. ./lib.sh
. ./library.sh
libraries failures-illegal failures-illegal-async failures-illegal-unload failures-hook
