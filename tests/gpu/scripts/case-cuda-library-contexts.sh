# A call runs in the context that is current, or the primary one, and leaves it as it was.
. ./lib.sh
. ./library.sh
libraries contexts-none contexts-primary contexts-own contexts-stream contexts-set-device
