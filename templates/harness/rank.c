// The rank, read from the environment, because MPI may not be available and starts later.
#include "rank.h"

#include <stdlib.h>
#include <string.h>

#include "text.h"

#define MARK "{rank}"

// The variables of MPICH and its derivatives, Open MPI, Slurm and PALS.
static const char *const variables[] = {
    "PMI_RANK", "PMIX_RANK", "OMPI_COMM_WORLD_RANK", "SLURM_PROCID", "PALS_RANKID",
};

static const char *const counts[] = {"PMI_SIZE", "OMPI_COMM_WORLD_SIZE", "SLURM_NTASKS"};

// The first variable whose value is a number; NULL if there is none.
static const char *find_number(const char *const *names, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    const char *number = getenv(names[i]);
    if (number != NULL && number[0] != '\0' && strspn(number, "0123456789") == strlen(number)) {
      return number;
    }
  }
  return NULL;
}

static const char *find_rank(void) {
  const char *rank = find_number(variables, sizeof(variables) / sizeof(variables[0]));
  return rank != NULL ? rank : "0";
}

bool harness_find_processes(long long *out_rank, long long *out_count) {
  const char *count = find_number(counts, sizeof(counts) / sizeof(counts[0]));
  const char *rank = find_number(variables, sizeof(variables) / sizeof(variables[0]));
  *out_rank = rank != NULL ? strtoll(rank, NULL, 10) : 0;
  *out_count = rank != NULL && count != NULL ? strtoll(count, NULL, 10) : 1;
  return (rank == NULL || count != NULL) && *out_rank < *out_count;
}

static char *replace(const char *word, const char *rank) {
  size_t marks = 0;
  for (const char *at = strstr(word, MARK); at != NULL; at = strstr(at + strlen(MARK), MARK)) {
    ++marks;
  }
  char *text = malloc(strlen(word) + marks * strlen(rank) + 1);
  if (text == NULL) {
    return NULL;
  }
  char *end = text;
  for (const char *at = strstr(word, MARK); at != NULL; at = strstr(word, MARK)) {
    size_t before = (size_t)(at - word);
    memcpy(end, word, before);
    memcpy(end + before, rank, strlen(rank));
    end += before + strlen(rank);
    word = at + strlen(MARK);
  }
  memcpy(end, word, strlen(word) + 1);
  return text;
}

bool harness_put_rank(int argc, char **argv) {
  const char *rank = find_rank();
  for (int i = 1; i < argc; ++i) {
    if (strstr(argv[i], MARK) == NULL) {
      continue;
    }
    char *text = replace(argv[i], rank);
    if (text == NULL) {
      harness_error("no memory for the arguments");
      return false;
    }
    argv[i] = text;
  }
  return true;
}
