// What the cases are made of: ends of the program, buffers with guards, and calls that are checked.
#ifndef LIBRARY_CHECK_H
#define LIBRARY_CHECK_H

#include <stdbool.h>
#include <stdint.h>

#include "one_vectors.h"
#include "vectors.h"

// A case: the program runs one of them, by name.
typedef struct library_case {
  const char *name;
  const char *about;
  void (*run)(void);
  bool runs_on_cpu; // too, with AOTC_DEVICE=cpu
  bool is_late;     // it starts the driver by itself
} library_case;

// Ends with a case whose name is NULL.
extern const library_case pointer_cases[], refusal_cases[], stream_cases[], capture_cases[],
    context_cases[], failure_cases[], lifetime_cases[], soak_cases[], tile_cases[];

// Whether the library's device is a GPU; else it is the CPU, and `cu` is not open.
extern bool is_on_gpu;

// The command line's word behind the case's name; NULL if there is none.
extern const char *the_argument;

// Ends the program: with the text and exit code 1; with «skipped: the text» and exit code 77.
__attribute__((format(printf, 1, 2))) _Noreturn void fail(const char *format, ...);
__attribute__((format(printf, 1, 2))) _Noreturn void skip(const char *format, ...);

// fail(...) unless `condition`.
#define EXPECT(condition, ...)                                                                     \
  do {                                                                                             \
    if (!(condition)) {                                                                            \
      fail(__VA_ARGS__);                                                                           \
    }                                                                                              \
  } while (0)

// A call of the library `vectors` that must succeed, and leave no message.
#define GOOD(call) check_good((call), #call, __FILE__, __LINE__)
void check_good(int32_t status, const char *call, const char *file, int line);

// A call of it that must fail with `status`, and whose message must have `text` in it.
#define REFUSED(status, text, call) check_refused((status), (text), (call), #call, __LINE__)
void check_refused(int32_t expected, const char *text, int32_t actual, const char *call, int line);

// Where a buffer is.
typedef enum kind { PAGEABLE, PINNED, MANAGED, DEVICE, REGISTERED } kind;
enum { KINDS = 5, MAIN_KINDS = 4 };
extern const char *const kind_names[KINDS];

// The kinds that there are on this device: all, or pageable memory alone.
bool has_kind(int kind);

// Floats between guards, all of which begin as poison: no two alike, and no result of any entry.
// The guards are odd in number, so that elements are aligned to themselves and no more.
enum { GUARD = 5 };
typedef struct buffer {
  kind kind;
  float *memory; // the guard, the elements, the guard
  float *data;   // the elements
  int64_t count;
} buffer;

// A new buffer, in the current context unless it is pageable.
buffer buffer_make(kind kind, int64_t count);
void buffer_free(buffer *b);

// All of it is poison again.
void buffer_poison(const buffer *b);

// Writes the first `count` elements.
void buffer_put(const buffer *b, const float *values, int64_t count);

// Ends the program unless the first `count` elements are `expected`, and the rest and the guards
// are poison.
__attribute__((format(printf, 4, 5))) void buffer_expect(const buffer *b, const float *expected,
                                                         int64_t count, const char *format, ...);

// The same for elements that were read already: `values` holds all of them, guards and all.
void buffer_compare(const float *values, const float *expected, int64_t written, int64_t count,
                    const char *what);

float poison_at(int64_t place);

// Reads all of it, guards and all. A device's buffer needs a current context here and above.
void buffer_read(const buffer *b, float *out_values);

// Host memory, never NULL; free() frees it.
void *need(void *memory);

// Fills an array with whole numbers from 0 to 15, in an order of their own for each seed.
void fill_numbers(float *values, int64_t count, uint32_t seed);

// Runs `body` on `count` threads at once, each with its number; all are joined.
void run_threads(int count, void (*body)(int number));

// The wall's time in seconds.
double now(void);

#endif // LIBRARY_CHECK_H
