// The host memory used by weights: only the page cache, which processes share.
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cuda.h>

#include "aotc_entry.h"
#include "aotc_runtime.h"
#include "check.h"
#include "fake_driver.h"
#include "scenario.h"

#define OFFSET 4096
#define MEBIBYTE ((uint64_t)1 << 20)

// A file with one weight of zeros, sparse except for its table, and an artifact's view of it.
typedef struct sparse {
  char path[64];
  aotc_weights weights;
  aotc_weight weight;
  aotc_weight *list[1];
} sparse;

static void make_sparse(sparse *made, uint64_t bytes) {
  unsigned char table[128] = "aotc-wts";
  uint64_t numbers[] = {OFFSET, bytes}, size = OFFSET + bytes;
  table[8] = 2;
  table[12] = 1;
  memcpy(table + 16, &size, sizeof(size));
  memcpy(table + 96, numbers, sizeof(numbers));
  *made = (sparse){.path = "/tmp/aotc-sparse-XXXXXX",
                   .weights = {.file = "model.weights", .weights = made->list, .count = 1},
                   .weight = {.weights = &made->weights, .constant = {.bytes = bytes}},
                   .list = {&made->weight}};
  int file = mkstemp(made->path);
  CHECK(file >= 0 && write(file, table, sizeof(table)) == (ssize_t)sizeof(table));
  CHECK_INT(0, ftruncate(file, (off_t)size));
  CHECK_INT(0, close(file));
  setenv("AOTC_WEIGHTS", made->path, 1);
}

static void remove_sparse(sparse *made) {
  aotc_weights_release(&made->weights);
  CHECK_INT(0, unlink(made->path));
}

// A value of the file's mapping in /proc/self/smaps, in KiB; -1 if it is not mapped.
static long long mapped(const char *path, const char *what) {
  FILE *maps = fopen("/proc/self/smaps", "re");
  char line[1024];
  bool is_here = false;
  long long found = -1;
  while (maps != NULL && fgets(line, sizeof(line), maps) != NULL) {
    // The first line of a mapping has its address range, the others have a name and a colon.
    if (strchr(line, '-') != NULL && strchr(line, '-') < line + 17) {
      is_here = strstr(line, path) != NULL;
    } else if (is_here && strncmp(line, what, strlen(what)) == 0) {
      found = strtoll(line + strlen(what), NULL, 10);
    }
  }
  CHECK(maps != NULL && fclose(maps) == 0);
  return found;
}

// All memory that is not backed by a file, in KiB.
static long long anonymous(void) {
  FILE *status = fopen("/proc/self/status", "re");
  char line[256];
  long long found = -1;
  while (status != NULL && fgets(line, sizeof(line), status) != NULL) {
    if (strncmp(line, "RssAnon:", 8) == 0) {
      found = strtoll(line + 8, NULL, 10);
    }
  }
  CHECK(status != NULL && fclose(status) == 0);
  return found;
}

static void opening_16_gigabytes_touches_none(void) {
  setenv("AOTC_DEVICE", "cpu", 1);
  sparse made;
  make_sparse(&made, 16 * 1024 * MEBIBYTE);
  long long before = anonymous();
  const unsigned char *data = aotc_weight_get(&made.weight);
  CHECK_INT(16 * 1024 * 1024 + 4, mapped(made.path, "Size:"));
  // The page with the table, and pages that the system maps around it.
  CHECK(mapped(made.path, "Rss:") <= 64);
  CHECK(anonymous() - before <= 256);
  CHECK_INT(0, data[16 * 1024 * MEBIBYTE - 1]);
  CHECK(mapped(made.path, "Rss:") <= 128);
  remove_sparse(&made);
  CHECK_NO_FAILURE();
}

static void read_all(const unsigned char *data, uint64_t bytes) {
  for (uint64_t at = 0; at < bytes; at += 4096) {
    CHECK_INT(0, data[at]);
  }
}

static void processes_share_the_page_cache(void) {
  setenv("AOTC_DEVICE", "cpu", 1);
  const uint64_t bytes = 4 * MEBIBYTE;
  sparse made;
  make_sparse(&made, bytes);
  pid_t other = fork(); // before the file is opened, so that each has its own mapping
  CHECK(other >= 0);
  read_all(aotc_weight_get(&made.weight), bytes);
  if (other == 0) {
    sleep(60); // until the parent has measured
    _exit(0);
  }
  long long shared = 0;
  for (int i = 0; i < 500 && shared < (long long)(bytes >> 10); ++i) {
    usleep(10000);
    // On an in-memory file system, pages of a hole are dirty.
    shared = mapped(made.path, "Shared_Clean:") + mapped(made.path, "Shared_Dirty:");
  }
  CHECK(shared >= (long long)(bytes >> 10));
  CHECK_INT(0, mapped(made.path, "Private_Dirty:"));
  CHECK_INT(0, mapped(made.path, "Anonymous:"));
  CHECK_INT(0, kill(other, SIGKILL));
  CHECK(waitpid(other, NULL, 0) == other);
  remove_sparse(&made);
  CHECK_NO_FAILURE();
}

// Data copied to a device are no longer in the process's memory.
static void copied_to_a_device_in_pieces(void) {
  fake_driver *driver = scenario_driver();
  setenv("AOTC_DEVICE", "cuda", 1);
  sparse made;
  make_sparse(&made, 80 * MEBIBYTE);
  const unsigned char *copy = aotc_weight_get_on_device(&made.weight);
  CHECK_INT(5, driver->copy_count); // through buffers of 16 MiB, which are kept
  CHECK_INT(2, driver->live_registrations);
  CHECK_INT(0, copy[80 * MEBIBYTE - 1]);
  CHECK(mapped(made.path, "Rss:") <= 128);
  remove_sparse(&made);
  CHECK_INT(0, driver->live_memory);
  CHECK_INT(AOTC_OK, aotc_unload());
  CHECK_INT(0, driver->live_registrations);
  CHECK_INT(0, driver->live_events);
  CHECK_TEXT("", driver->violation);
  CHECK_NO_FAILURE();
}

int main(int argc, char **argv) {
  static const check_test tests[] = {
      CHECK_TEST(opening_16_gigabytes_touches_none),
      CHECK_TEST(processes_share_the_page_cache),
      CHECK_TEST(copied_to_a_device_in_pieces),
  };
  return check_main(argc, argv, tests, sizeof(tests) / sizeof(tests[0]));
}
