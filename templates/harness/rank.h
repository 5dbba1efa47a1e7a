// Which of several processes this one is.
#ifndef HARNESS_RANK_H
#define HARNESS_RANK_H

#include <stdbool.h>

// Puts this process's rank, as the launcher of MPI's programs tells it, in place of each "{rank}"
// in the words; 0 where there is no launcher. False after an error (no memory), which is told. What
// was replaced lives as long as the process.
bool harness_put_rank(int argc, char **argv);

// The rank, and how many processes there are: 0 and 1 where there is no launcher. False where the
// launcher tells a rank, and not how many.
bool harness_find_processes(long long *out_rank, long long *out_count);

#endif // HARNESS_RANK_H
