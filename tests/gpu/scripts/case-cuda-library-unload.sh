# Unload gives all of the device's memory back, and what comes after it works.
. ./lib.sh
. ./library.sh
libraries lifetimes-unload lifetimes-unload-all
