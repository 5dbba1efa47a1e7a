// The instructions of AMX as functions, for tests on processors that lack them: Intel's Software
// Developer's Manual, volume 1, chapter 18, and volume 2. What the processor refuses ends the
// process.
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "aotc_runtime.h"

enum { REGISTERS = 8, MOST_ROWS = 16, MOST_BYTES = 64 };

typedef struct configuration {
  uint8_t palette;
  uint8_t start_row;
  uint8_t reserved[14];
  uint16_t row_bytes[16];
  uint8_t rows[16];
} configuration;

static _Thread_local configuration now;
static _Thread_local uint8_t data[REGISTERS][MOST_ROWS][MOST_BYTES];

static void demand(int condition) {
  if (!condition) {
    abort();
  }
}

static void demand_register(uint8_t number) {
  demand(now.palette == 1 && number < REGISTERS && now.rows[number] != 0);
}

void emulated_ldtilecfg(const void *from) {
  memcpy(&now, from, sizeof(now));
  memset(data, 0, sizeof(data));
  demand(now.palette == 1 && now.start_row == 0);
  for (int i = 0; i < 14; ++i) {
    demand(now.reserved[i] == 0);
  }
  for (int i = 0; i < 16; ++i) {
    demand(now.rows[i] <= MOST_ROWS && now.row_bytes[i] <= MOST_BYTES);
    demand((now.rows[i] == 0) == (now.row_bytes[i] == 0) && (i < REGISTERS || now.rows[i] == 0));
  }
}

void emulated_tilerelease(void) {
  memset(&now, 0, sizeof(now));
}

void emulated_tilezero(uint8_t number) {
  demand_register(number);
  memset(data[number], 0, sizeof(data[number]));
}

void emulated_tileloadd64(uint8_t number, const char *from, int64_t stride) {
  emulated_tilezero(number);
  for (int row = 0; row < now.rows[number]; ++row) {
    memcpy(data[number][row], from + row * stride, now.row_bytes[number]);
  }
}

void emulated_tilestored64(uint8_t number, char *to, int64_t stride) {
  demand_register(number);
  for (int row = 0; row < now.rows[number]; ++row) {
    memcpy(to + row * stride, data[number][row], now.row_bytes[number]);
  }
}

static void demand_product(uint8_t c, uint8_t a, uint8_t b) {
  demand_register(c);
  demand_register(a);
  demand_register(b);
  demand(c != a && c != b && a != b);
  demand(now.rows[c] == now.rows[a] && now.row_bytes[c] == now.row_bytes[b]);
  demand(now.row_bytes[a] == 4 * now.rows[b] && now.row_bytes[b] % 4 == 0);
}

static float float_of(const uint8_t *bytes) {
  uint32_t bits = (uint32_t)bytes[1] << 24 | (uint32_t)bytes[0] << 16;
  float value;
  memcpy(&value, &bits, sizeof(value));
  return value;
}

void emulated_tdpbf16ps(uint8_t c, uint8_t a, uint8_t b) {
  demand_product(c, a, b);
  for (int row = 0; row < now.rows[c]; ++row) {
    for (int column = 0; column < now.row_bytes[c]; column += 4) {
      float sum;
      memcpy(&sum, &data[c][row][column], sizeof(sum));
      for (int k = 0; k < now.rows[b]; ++k) {
        const uint8_t *x = &data[a][row][4 * k];
        const uint8_t *y = &data[b][k][column];
        sum += float_of(x) * float_of(y);
        sum += float_of(x + 2) * float_of(y + 2);
      }
      memcpy(&data[c][row][column], &sum, sizeof(sum));
    }
  }
}

static void multiply_bytes(uint8_t c, uint8_t a, uint8_t b, int is_a_signed, int is_b_signed) {
  demand_product(c, a, b);
  for (int row = 0; row < now.rows[c]; ++row) {
    for (int column = 0; column < now.row_bytes[c]; column += 4) {
      uint32_t sum;
      memcpy(&sum, &data[c][row][column], sizeof(sum));
      for (int k = 0; k < now.row_bytes[a]; ++k) {
        uint8_t x = data[a][row][k];
        uint8_t y = data[b][k / 4][column + k % 4];
        int of_a = is_a_signed ? (int8_t)x : x;
        int of_b = is_b_signed ? (int8_t)y : y;
        sum += (uint32_t)(of_a * of_b);
      }
      memcpy(&data[c][row][column], &sum, sizeof(sum));
    }
  }
}

void emulated_tdpbssd(uint8_t c, uint8_t a, uint8_t b) {
  multiply_bytes(c, a, b, 1, 1);
}

void emulated_tdpbsud(uint8_t c, uint8_t a, uint8_t b) {
  multiply_bytes(c, a, b, 1, 0);
}

void emulated_tdpbusd(uint8_t c, uint8_t a, uint8_t b) {
  multiply_bytes(c, a, b, 0, 1);
}

void emulated_tdpbuud(uint8_t c, uint8_t a, uint8_t b) {
  multiply_bytes(c, a, b, 0, 0);
}

// Of the harness: `grouped` is the library's name.
int32_t grouped_status(void) {
  return (int32_t)aotc_status_get();
}

const char *grouped_last_error(void) {
  return aotc_error_message();
}
