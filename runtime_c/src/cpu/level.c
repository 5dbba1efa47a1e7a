// Which instruction set extensions the processor has.
#include "level.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "../state.h"

#ifdef __x86_64__
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>

// The levels of the x86-64 psABI, from the CPUID bits of Intel's manual (leaves 1, 7 and 80000001h)
// and from XCR0: registers that the operating system does not save cannot be used. In addition,
// level 5 has AVX512_VNNI, level 6 AVX512_BF16, and level 7 AMX with products of bf16 and of bytes.
#define FMA_BIT (1U << 12)
#define MOVBE_BIT (1U << 22)
#define OSXSAVE_BIT (1U << 27)
#define AVX_BIT (1U << 28)
#define F16C_BIT (1U << 29)
#define V3_LEAF_1 (FMA_BIT | MOVBE_BIT | OSXSAVE_BIT | AVX_BIT | F16C_BIT)
#define BMI1_BIT (1U << 3)
#define AVX2_BIT (1U << 5)
#define BMI2_BIT (1U << 8)
#define V3_LEAF_7 (BMI1_BIT | AVX2_BIT | BMI2_BIT)
#define LZCNT_BIT (1U << 5)
#define AVX512F_BIT (1U << 16)
#define AVX512DQ_BIT (1U << 17)
#define AVX512CD_BIT (1U << 28)
#define AVX512BW_BIT (1U << 30)
#define AVX512VL_BIT (1U << 31)
#define V4_LEAF_7 (AVX512F_BIT | AVX512DQ_BIT | AVX512CD_BIT | AVX512BW_BIT | AVX512VL_BIT)
#define AVX512_VNNI_BIT (1U << 11)                        // in ECX
#define AVX512_BF16_BIT (1U << 5)                         // in EAX of leaf 7, 1
#define AMX_LEAF_7 ((1U << 22) | (1U << 24) | (1U << 25)) // AMX_BF16, AMX_TILE, AMX_INT8, in EDX
#define AVX_STATE 0x6U
#define AVX512_STATE 0xe6U
#define AMX_STATE 0x600e6U

// From the Linux kernel's asm/prctl.h, which older systems lack, and its documentation of XSTATE
// (arch/x86/xstate): a process asks once for the tile registers' data.
#define ARCH_REQ_XCOMP_PERM 0x1023
#define TILE_DATA 18

static bool has(uint32_t bits, uint32_t wanted) {
  return (bits & wanted) == wanted;
}

static int64_t level_of_processor(void) {
  uint32_t a = 0, b = 0, c = 0, d = 0, leaf_7 = 0, leaf_7_c = 0, leaf_7_d = 0;
  if (__get_cpuid_count(7, 0, &a, &leaf_7, &leaf_7_c, &leaf_7_d) == 0 ||
      __get_cpuid(1, &a, &b, &c, &d) == 0 || !has(c, V3_LEAF_1) || !has(leaf_7, V3_LEAF_7)) {
    return 1;
  }
  if (__get_cpuid(0x80000001U, &a, &b, &c, &d) == 0 || !has(c, LZCNT_BIT)) {
    return 1;
  }
  uint32_t state = 0;
  __asm__ volatile("xgetbv" : "=a"(state), "=d"(d) : "c"(0));
  if (!has(state, AVX_STATE)) {
    return 1;
  }
  if (!has(leaf_7, V4_LEAF_7) || !has(state, AVX512_STATE)) {
    return 3;
  }
  if (!has(leaf_7_c, AVX512_VNNI_BIT)) {
    return 4;
  }
  if (__get_cpuid_count(7, 1, &a, &b, &c, &d) == 0 || !has(a, AVX512_BF16_BIT)) {
    return 5;
  }
  return has(leaf_7_d, AMX_LEAF_7) && has(state, AMX_STATE) ? 7 : 6;
}

static bool ask_for_tiles(void) {
  return syscall(SYS_arch_prctl, ARCH_REQ_XCOMP_PERM, TILE_DATA) == 0;
}
#else
static bool ask_for_tiles(void) {
  return false;
}

static int64_t level_of_processor(void) {
  return 0;
}
#endif

// The level set in the environment; 0 if it is not set, -1 if it is invalid.
static int64_t wanted_level(void) {
  const char *text = getenv("AOTC_CPU_LEVEL");
  if (text == NULL || text[0] == '\0') {
    return 0;
  }
  return text[0] >= '1' && text[0] <= '7' && text[1] == '\0' ? text[0] - '0' : -1;
}

bool aotc_rt_cpu_level_is_valid(void) {
  if (wanted_level() >= 0) {
    return true;
  }
  aotc_rt_fail(AOTC_INVALID_ARGUMENT, "AOTC_CPU_LEVEL is '%s'; expected a number from 1 to 7",
               getenv("AOTC_CPU_LEVEL"));
  return false;
}

static int64_t find_level(void) {
  int64_t level = level_of_processor();
  int64_t wanted = wanted_level();
  return wanted > 0 && wanted < level ? wanted : level;
}

int64_t aotc_rt_cpu_level(void) {
  // CPUID can be slow under a hypervisor, so it is executed only once.
  static _Atomic(int64_t) known = -1;
  int64_t level = atomic_load_explicit(&known, memory_order_relaxed);
  if (level < 0) {
    level = find_level();
    atomic_store_explicit(&known, level, memory_order_relaxed);
  }
  return level;
}

bool aotc_rt_cpu_allows_tiles(void) {
  enum { UNKNOWN, REFUSED, ALLOWED };
  static _Atomic(int) known = UNKNOWN;
  int answer = atomic_load_explicit(&known, memory_order_relaxed);
  if (answer == UNKNOWN) {
    answer = ask_for_tiles() ? ALLOWED : REFUSED;
    atomic_store_explicit(&known, answer, memory_order_relaxed);
  }
  return answer == ALLOWED;
}
