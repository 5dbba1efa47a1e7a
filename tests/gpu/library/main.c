// Runs one case over two libraries of the same module: `vectors`, and `one_vectors` by prefix; or
// over `tma_schedule`.
//
//   library CASE [WORD]   exit code 0: all is as it should be. 1: what is printed is not. 77: there
//                         is no GPU
//   library --list        the cases; those with a * run with AOTC_DEVICE=cpu, too
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "driver.h"

static const library_case *const all_cases[] = {
    pointer_cases, refusal_cases,  stream_cases, capture_cases, context_cases,
    failure_cases, lifetime_cases, soak_cases,   tile_cases,
};
enum { CASE_LISTS = sizeof(all_cases) / sizeof(all_cases[0]) };

static const library_case *find_case(const char *name) {
  for (int i = 0; i < CASE_LISTS; ++i) {
    for (const library_case *c = all_cases[i]; c->name != NULL; ++c) {
      if (strcmp(c->name, name) == 0) {
        return c;
      }
    }
  }
  return NULL;
}

static int list(void) {
  for (int i = 0; i < CASE_LISTS; ++i) {
    for (const library_case *c = all_cases[i]; c->name != NULL; ++c) {
      printf("%c %-28s%s\n", c->runs_on_cpu ? '*' : ' ', c->name, c->about);
    }
  }
  return 0;
}

int main(int argc, char **argv) {
  if (argc == 2 && (strcmp(argv[1], "--list") == 0 || strcmp(argv[1], "--help") == 0)) {
    return list();
  }
  const library_case *wanted = argc == 2 || argc == 3 ? find_case(argv[1]) : NULL;
  if (wanted == NULL) {
    fprintf(stderr, "usage: library CASE [WORD]; library --list\n");
    return 2;
  }
  // Not auto: where the GPU cannot be used, the CPU must not take its place.
  if (setenv("AOTC_DEVICE", "cuda", 0) != 0) {
    fail("no environment");
  }
  the_argument = argc == 3 ? argv[2] : NULL;
  is_on_gpu = strcmp(getenv("AOTC_DEVICE"), "cpu") != 0;
  if (!is_on_gpu && !wanted->runs_on_cpu) {
    skip("%s needs a GPU", wanted->name);
  }
  if (is_on_gpu) {
    if (wanted->is_late) {
      driver_find();
    } else {
      driver_open();
    }
  }
  wanted->run();
  return 0;
}
