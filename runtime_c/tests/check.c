// Runs tests in child processes and reports failures.
#include "check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

// A test that takes longer is considered to hang.
#define TIME_LIMIT_SECONDS 120

static _Atomic int the_failures;
static const char *the_note;

int check_failures(void) {
  return the_failures;
}

void check_note(const char *note) {
  the_note = note;
}

static void fail(const char *file, int line) {
  ++the_failures;
  fprintf(stderr, "%s:%d: ", file, line);
  if (the_note != NULL) {
    fprintf(stderr, "[%s] ", the_note);
  }
}

void check_true(bool is_true, const char *file, int line, const char *text) {
  if (!is_true) {
    fail(file, line);
    fprintf(stderr, "not so: %s\n", text);
  }
}

void check_int(long long expected, long long actual, const char *file, int line, const char *text) {
  if (expected != actual) {
    fail(file, line);
    fprintf(stderr, "%s is %lld, expected %lld\n", text, actual, expected);
  }
}

void check_text(const char *expected, const char *actual, const char *file, int line) {
  if (strcmp(expected, actual) != 0) {
    fail(file, line);
    fprintf(stderr, "\"%s\", expected \"%s\"\n", actual, expected);
  }
}

void check_contains(const char *text, const char *part, const char *file, int line) {
  if (strstr(text, part) == NULL) {
    fail(file, line);
    fprintf(stderr, "\"%s\" does not contain \"%s\"\n", text, part);
  }
}

bool check_in_child(void (*run)(void *), void *argument) {
  fflush(NULL);
  pid_t child = fork();
  if (child < 0) {
    perror("fork");
    return false;
  }
  if (child == 0) {
    alarm(TIME_LIMIT_SECONDS);
    the_failures = 0;
    run(argument);
    // Uses exit, so that destructors run as at the end of a program.
    exit(the_failures == 0 ? 0 : 1);
  }
  int status = 0;
  if (waitpid(child, &status, 0) != child) {
    perror("waitpid");
    return false;
  }
  if (WIFSIGNALED(status)) {
    fprintf(stderr, "ended by signal %d (%s)\n", WTERMSIG(status), strsignal(WTERMSIG(status)));
  }
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static void run_test(void *argument) {
  const check_test *test = argument;
  test->run();
}

static bool is_wanted(const char *name, int argc, char **argv) {
  for (int i = 1; i < argc; ++i) {
    if (strcmp(argv[i], name) == 0) {
      return true;
    }
  }
  return argc < 2;
}

int check_main(int argc, char **argv, const check_test *tests, int count) {
  int run = 0;
  int failed = 0;
  for (int i = 0; i < count; ++i) {
    if (is_wanted(tests[i].name, argc, argv)) {
      check_test test = tests[i];
      bool has_passed = check_in_child(run_test, &test);
      ++run;
      failed += has_passed ? 0 : 1;
      printf("%s %s\n", has_passed ? "passed" : "FAILED", test.name);
    }
  }
  printf("%d passed, %d failed\n", run - failed, failed);
  return failed == 0 && run > 0 ? 0 : 1;
}
