// Checks for the C tests. Each test runs in a process of its own, with an unused runtime.
#ifndef AOTC_CHECK_H
#define AOTC_CHECK_H

#include <stdbool.h>

typedef struct check_test {
  const char *name;
  void (*run)(void);
} check_test;

#define CHECK_TEST(function) {#function, function}

// Runs the tests whose names are given, or all; the exit code of main.
int check_main(int argc, char **argv, const check_test *tests, int count);

// How many checks failed in this process.
int check_failures(void);

// Note what failed and go on.
void check_true(bool is_true, const char *file, int line, const char *text);
void check_int(long long expected, long long actual, const char *file, int line, const char *text);
void check_text(const char *expected, const char *actual, const char *file, int line);
void check_contains(const char *text, const char *part, const char *file, int line);
// Is printed with every failure until the next one; NULL for none.
void check_note(const char *note);

#define CHECK(condition) check_true((condition), __FILE__, __LINE__, #condition)
#define CHECK_INT(expected, actual)                                                                \
  check_int((long long)(expected), (long long)(actual), __FILE__, __LINE__, #actual)
#define CHECK_TEXT(expected, actual) check_text((expected), (actual), __FILE__, __LINE__)
#define CHECK_CONTAINS(text, part) check_contains((text), (part), __FILE__, __LINE__)

// This thread's failure has this status, and a message that contains this text; clears it.
#define CHECK_FAILED(status, part)                                                                 \
  do {                                                                                             \
    CHECK_TEXT(aotc_status_name(status), aotc_status_name(aotc_status_get()));                     \
    CHECK_CONTAINS(aotc_error_message(), part);                                                    \
    aotc_error_clear();                                                                            \
  } while (0)

// This thread has not failed.
#define CHECK_NO_FAILURE()                                                                         \
  do {                                                                                             \
    CHECK_TEXT("", aotc_error_message());                                                          \
    CHECK_INT(AOTC_OK, aotc_status_get());                                                         \
  } while (0)

// Runs `run` in a child process; whether it ended well. What it prints is shown.
bool check_in_child(void (*run)(void *), void *argument);

#endif // AOTC_CHECK_H
