// The rank of this process among several.
#ifndef HARNESS_RANK_H
#define HARNESS_RANK_H

#include <stdbool.h>

// Replaces each "{rank}" in the words by this process's rank, as the launcher of MPI programs sets
// it; 0 without a launcher. On an error (no memory), prints it and returns false. The replaced
// words are never freed.
bool harness_put_rank(int argc, char **argv);

// The rank, and the number of processes: 0 and 1 without a launcher. False if the launcher sets a
// rank, but not the number of processes.
bool harness_find_processes(long long *out_rank, long long *out_count);

#endif // HARNESS_RANK_H
