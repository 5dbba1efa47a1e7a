# Calls on the caller's streams come in their order, also from threads without a context.
. ./lib.sh
. ./library.sh
libraries streams-order streams-default streams-without-context streams-plain-follows
