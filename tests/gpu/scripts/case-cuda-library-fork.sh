# A fork after the first use gives the child a status and no hang; the parent goes on.
. ./lib.sh
. ./library.sh
libraries lifetimes-fork lifetimes-fork-calling lifetimes-fork-first
