// Prints numbers, text and punctuation to stdout: the functions vector.print is lowered to.
#include <inttypes.h>
#include <stdio.h>

#include "memref.h"
#include "utility.h"

static void print_text(const char *text) {
  if (!aotc_is_stopped()) {
    fputs(text, stdout);
  }
}

static void print_float(double value) {
  if (!aotc_is_stopped()) {
    printf("%g", value);
  }
}

UTILITY void printI64(int64_t value) {
  if (!aotc_is_stopped()) {
    printf("%" PRId64, value);
  }
}

UTILITY void printU64(uint64_t value) {
  if (!aotc_is_stopped()) {
    printf("%" PRIu64, value);
  }
}

UTILITY void printF64(double value) {
  print_float(value);
}

UTILITY void printF32(float value) {
  print_float((double)value);
}

// MLIR does not extend an i16 argument, but C compilers rely on the extension of a uint16_t.
UTILITY void printF16(uint32_t bits) {
  print_float((double)aotc_program_f16_value((uint16_t)bits));
}

UTILITY void printBF16(uint32_t bits) {
  print_float((double)aotc_program_bf16_value((uint16_t)bits));
}

UTILITY void printString(const char *text) {
  print_text(text);
}

UTILITY void printCString(const char *text) {
  print_text(text);
}

UTILITY void printOpen(void) {
  print_text("( ");
}

UTILITY void printClose(void) {
  print_text(" )");
}

UTILITY void printComma(void) {
  print_text(", ");
}

UTILITY void printNewline(void) {
  print_text("\n");
}
