// The rank, from the environment: MPI itself may not be there, and starts later.
#include "rank.h"

#include <stdlib.h>
#include <string.h>

#include "text.h"

#define MARK "{rank}"

// Of MPICH and what descends from it, Open MPI, Slurm and PALS.
static const char *const variables[] = {
    "PMI_RANK", "PMIX_RANK", "OMPI_COMM_WORLD_RANK", "SLURM_PROCID", "PALS_RANKID",
};

static const char *find_rank(void) {
  for (size_t i = 0; i < sizeof(variables) / sizeof(variables[0]); ++i) {
    const char *rank = getenv(variables[i]);
    if (rank != NULL && rank[0] != '\0' && strspn(rank, "0123456789") == strlen(rank)) {
      return rank;
    }
  }
  return "0";
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
