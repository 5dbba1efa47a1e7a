// Numbers, text and punctuation to stdout: what vector.print is made of.
#include <inttypes.h>
#include <stdio.h>

#include "memref.h"

static void print_text(const char *text) {
  if (!aotc_is_stopped()) {
    fputs(text, stdout);
  }
}

void printI64(int64_t value) {
  if (!aotc_is_stopped()) {
    printf("%" PRId64, value);
  }
}

void printU64(uint64_t value) {
  if (!aotc_is_stopped()) {
    printf("%" PRIu64, value);
  }
}

void printF64(double value) {
  if (!aotc_is_stopped()) {
    printf("%g", value);
  }
}

void printF32(float value) {
  printF64((double)value);
}

// MLIR passes an i16 without extending it; C compilers rely on that for a uint16_t.
void printF16(uint32_t bits) {
  printF32(aotc_program_f16_value((uint16_t)bits));
}

void printBF16(uint32_t bits) {
  printF32(aotc_program_bf16_value((uint16_t)bits));
}

void printString(const char *text) {
  print_text(text);
}

void printCString(const char *text) {
  print_text(text);
}

void printOpen(void) {
  print_text("( ");
}

void printClose(void) {
  print_text(" )");
}

void printComma(void) {
  print_text(", ");
}

void printNewline(void) {
  print_text("\n");
}
