// Checks for the C tests. Each test runs in its own process, with a fresh runtime.
#ifndef AOTC_CHECK_H
#define AOTC_CHECK_H

#include <stdbool.h>

typedef struct check_test {
  const char *name;
  void (*run)(void);
} check_test;

#define CHECK_TEST(function) {#function, function}

// Runs the named tests, or all; returns the exit code of main.
int check_main(int argc, char **argv, const check_test *tests, int count);

// The number of failed checks in this process.
int check_failures(void);

// Record a failed check and continue.
void check_true(bool is_true, const char *file, int line, const char *text);
void check_int(long long expected, long long actual, const char *file, int line, const char *text);
void check_text(const char *expected, const char *actual, const char *file, int line);
void check_contains(const char *text, const char *part, const char *file, int line);
// Sets a note that is printed with every failure; NULL for none.
void check_note(const char *note);

#define CHECK(condition) check_true((condition), __FILE__, __LINE__, #condition)
#define CHECK_INT(expected, actual)                                                                \
  check_int((long long)(expected), (long long)(actual), __FILE__, __LINE__, #actual)
#define CHECK_TEXT(expected, actual) check_text((expected), (actual), __FILE__, __LINE__)
#define CHECK_CONTAINS(text, part) check_contains((text), (part), __FILE__, __LINE__)

// Checks that this thread's failure has this status and a message containing this text; clears it.
#define CHECK_FAILED(status, part)                                                                 \
  do {                                                                                             \
    CHECK_TEXT(aotc_status_name(status), aotc_status_name(aotc_status_get()));                     \
    CHECK_CONTAINS(aotc_error_message(), part);                                                    \
    aotc_error_clear();                                                                            \
  } while (0)

// Checks that this thread has no failure.
#define CHECK_NO_FAILURE()                                                                         \
  do {                                                                                             \
    CHECK_TEXT("", aotc_error_message());                                                          \
    CHECK_INT(AOTC_OK, aotc_status_get());                                                         \
  } while (0)

// Runs `run` in a child process, showing its output; returns whether it succeeded.
bool check_in_child(void (*run)(void *), void *argument);

#endif // AOTC_CHECK_H
