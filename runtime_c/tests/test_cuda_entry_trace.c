// AOTC_TRACE: the events of calls on either device, and handling of the file.
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include <cuda.h>

#include "aotc_runtime.h"
#include "check.h"
#include "entries.h"
#include "scenario.h"

static char the_path[] = "/tmp/aotc_trace_XXXXXX";
static char the_text[1000000];

// Creates a file with the contents `old` and sets AOTC_TRACE to it; returns its descriptor.
static int begin_trace(const char *old) {
  int file = mkstemp(the_path);
  CHECK(file >= 0 && write(file, old, strlen(old)) == (ssize_t)strlen(old));
  setenv("AOTC_TRACE", the_path, 1);
  return file;
}

static const char *text_of(const char *path) {
  FILE *file = fopen(path, "r");
  size_t bytes = file != NULL ? fread(the_text, 1, sizeof(the_text) - 1, file) : 0;
  the_text[bytes] = '\0';
  if (file != NULL) {
    fclose(file);
  }
  return the_text;
}

static const char *read_text(const char *path) {
  const char *text = text_of(path);
  unlink(path);
  return text;
}

static void call(const aotc_entry *entry) {
  float a[] = {1, 2, 3, 4}, b[] = {0, 0, 0, 0}, c[] = {0, 0, 0, 9};
  CHECK_INT(AOTC_OK, entries_call(entry, vector_at(a), vector_at(b), vector_at(c)));
  entries_check_sum(c, 1, 9);
}

static int count(const char *text, const char *part) {
  int found = 0;
  while ((text = strstr(text, part)) != NULL) {
    text += strlen(part);
    ++found;
  }
  return found;
}

static void calls_on_a_gpu_are_traced(void) {
  scenario_driver();
  close(begin_trace("of an earlier run"));
  entries_load("cuda");
  call(&entry_add);
  const char *text = read_text(the_path);
  CHECK(strncmp(text, "[\n{\"ph\":\"X\",", 12) == 0);
  CHECK_INT(1, count(text, "\"cat\":\"call\",\"name\":\"add\","));
  CHECK_INT(1, count(text, "\"cat\":\"launch\",\"name\":\"add\","));
  CHECK_CONTAINS(text, "\"args\":{\"kernel\":\"add\",\"grid\":[1,1,1],\"block\":[32,1,1],"
                       "\"device\":\"cuda:0\"}},\n");
  CHECK_INT(3, count(text, "\"bytes\":16,\"direction\":\"host to device\",\"device\":\"cuda:0\""));
  CHECK_INT(1, count(text, "\"bytes\":16,\"direction\":\"device to host\",\"device\":\"cuda:0\""));
  CHECK(count(text, "\"cat\":\"wait\"") >= 1);
  CHECK_INT(count(text, "\"ph\":\"X\""), count(text, "\"device\":\"cuda:0\"}},\n"));
  // With the device's times, whose events are 2.5 ms apart here, on the stream's row.
  CHECK_INT(5, count(text, "\"dur\":2500.000,"));
  CHECK_INT(1, count(text, "\"args\":{\"name\":\"cuda:0, stream 0\"}},\n"));
  CHECK_INT(0, count(text, "\"time\":\"host\""));
}

// All calls of lowered code behave the same with a trace.
static void everything_works_under_a_trace(void) {
  const fake_driver *driver = scenario_driver();
  close(begin_trace(""));
  setenv("AOTC_DEVICE", "cuda", 1);
  scenario_run_program(true);
  CHECK_NO_FAILURE();
  CHECK(driver->tensor_map_count > 0);
  CHECK_TEXT("", driver->violation);
  unlink(the_path);
}

static int traced(const char *part) {
  return count(text_of(the_path), part);
}

static void enqueue(void *stream) {
  static float *d;
  d = d != NULL ? d : entries_make(AOTC_MEMORY_DEVICE, 1);
  vector v = vector_at(d);
  void *values[] = {&v, &v, &v};
  CHECK_INT(AOTC_OK, aotc_entry_enqueue(&entry_add, values, stream));
}

static void nobody_waits_for_the_trace(void) {
  fake_driver *driver = scenario_driver();
  close(begin_trace(""));
  entries_load("cuda");
  enqueue(CU_STREAM_LEGACY);
  int since = driver->call_count;
  enqueue(CU_STREAM_LEGACY);
  CHECK_INT(0, entries_count_calls(driver, since, "cuStreamSynchronize"));
  CHECK_INT(0, entries_count_calls(driver, since, "cuEventSynchronize"));
  CHECK_INT(0, traced("\"cat\":\"launch\"")); // nobody has waited yet
  CHECK_INT(2, traced("\"cat\":\"call\""));
  // Without a wait, times are queried after a few hundred launches.
  for (int i = 0; i < 300; ++i) {
    enqueue(CU_STREAM_LEGACY);
  }
  CHECK_INT(256, traced("\"dur\":2500.000,"));
  CHECK_INT(1, traced("\"name\":\"cuda:0, stream 0 (default)\""));
  CHECK_INT(AOTC_OK, aotc_unload());
  CHECK_INT(302, traced("\"dur\":2500.000,"));
  CHECK_INT(0, driver->live_events);
  CHECK_INT(0, driver->live_streams);
  CHECK_TEXT("", driver->violation);
  CHECK_INT(0, unlink(the_path));
}

static void what_is_captured_has_the_times_of_the_host(void) {
  fake_driver *driver = scenario_driver();
  close(begin_trace(""));
  entries_load("cuda");
  enqueue(CU_STREAM_PER_THREAD);
  driver->is_capturing = true;
  int since = driver->call_count;
  enqueue(CU_STREAM_PER_THREAD);
  CHECK_INT(0, entries_count_calls(driver, since, "cuEventRecord"));
  CHECK_INT(1, traced("\"cat\":\"launch\""));
  CHECK_INT(1, traced("\"time\":\"host\""));
  driver->is_capturing = false;
  CHECK_TEXT("", driver->violation);
  CHECK_INT(0, unlink(the_path));
}

// Failures of the trace's own driver calls are not the program's.
static void events_that_fail_are_done_without(void) {
  static const char *const symbols[] = {"cuEventCreate", "cuEventRecord", "cuEventElapsedTime",
                                        "cuEventSynchronize", "cuStreamCreate"};
  fake_driver *driver = scenario_driver();
  close(begin_trace(""));
  entries_load("cuda");
  for (size_t i = 0; i < sizeof(symbols) / sizeof(symbols[0]); ++i) {
    driver->fail_symbol = symbols[i];
    driver->fail_result = 999;
    driver->fail_at = 1;
    driver->fail_count = 1000;
    call(&entry_add);
    driver->fail_at = 0;
  }
  CHECK_INT(AOTC_OK, aotc_unload());
  CHECK_INT(5, traced("\"cat\":\"launch\""));
  CHECK_INT(20, traced("\"cat\":\"copy\""));
  CHECK_INT(0, driver->live_events);
  CHECK_INT(0, unlink(the_path));
}

static void calls_on_the_cpu_are_traced(void) {
  close(begin_trace(""));
  entries_load("cpu");
  call(&entry_add);
  const char *text = read_text(the_path);
  CHECK_INT(1, count(text, "\"cat\":\"call\",\"name\":\"add\","));
  CHECK_CONTAINS(text, "\"cat\":\"launch\",\"name\":\"add\",");
  CHECK_CONTAINS(text, "\"grid\":[1,1,1],\"block\":[32,1,1],\"device\":\"cpu\"}},\n");
  CHECK(count(text, "\"cat\":\"wait\"") >= 1);
}

static void copies_on_the_cpu_are_traced(void) {
  close(begin_trace(""));
  setenv("AOTC_DEVICE", "cpu", 1);
  int from = 7, to = 0;
  CHECK_INT(AOTC_OK, aotc_memory_copy(&to, &from, sizeof(to)));
  CHECK_INT(7, to);
  CHECK_CONTAINS(read_text(the_path), "\"bytes\":4,\"direction\":\"host to host\"");
}

static void names_are_escaped(void) {
  close(begin_trace(""));
  entries_load("cpu");
  aotc_entry odd = entry_add;
  odd.name = "\"\\\n\xff\xc3\xa9";
  call(&odd);
  CHECK_CONTAINS(read_text(the_path), "\"name\":\"\\u0022\\u005c\\u000a?\xc3\xa9\"");
}

// Another library, or process, holds the lock.
static void other_writers_keep_their_events(void) {
  int other = begin_trace("[\n{\"other\":1},\n");
  CHECK_INT(0, flock(other, LOCK_SH));
  entries_load("cpu");
  call(&entry_add);
  const char *text = read_text(the_path);
  CHECK(strncmp(text, "[\n{\"other\":1},\n{\"ph\"", 20) == 0);
  close(other);
}

static void check_refused(const char *path, const char *warning) {
  char said[] = "/tmp/aotc_said_XXXXXX";
  int file = mkstemp(said), before = dup(STDERR_FILENO);
  setenv("AOTC_TRACE", path, 1);
  entries_load("cpu");
  dup2(file, STDERR_FILENO);
  call(&entry_add);
  call(&entry_add);
  dup2(before, STDERR_FILENO);
  CHECK_TEXT(warning, read_text(said));
  close(file);
}

static void no_file_is_one_warning(void) {
  check_refused("/no/such/folder",
                "warning: AOTC_TRACE: /no/such/folder: No such file or directory\n");
}

static void devices_are_no_files(void) {
  check_refused("/dev/null", "warning: AOTC_TRACE: /dev/null: it is no regular file\n");
}

int main(int argc, char **argv) {
  static const check_test tests[] = {
      CHECK_TEST(calls_on_a_gpu_are_traced),
      CHECK_TEST(everything_works_under_a_trace),
      CHECK_TEST(nobody_waits_for_the_trace),
      CHECK_TEST(what_is_captured_has_the_times_of_the_host),
      CHECK_TEST(events_that_fail_are_done_without),
      CHECK_TEST(calls_on_the_cpu_are_traced),
      CHECK_TEST(copies_on_the_cpu_are_traced),
      CHECK_TEST(names_are_escaped),
      CHECK_TEST(other_writers_keep_their_events),
      CHECK_TEST(no_file_is_one_warning),
      CHECK_TEST(devices_are_no_files),
  };
  return check_main(argc, argv, tests, sizeof(tests) / sizeof(tests[0]));
}
