#include "source.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "generator.h"

static bool is_integer(aotc_dtype dtype) {
  harness_kind kind = harness_facts(dtype)->kind;
  return kind != HARNESS_KIND_REAL && kind != HARNESS_KIND_COMPLEX;
}

const char *harness_source_default(const aotc_value *value) {
  if (value->state != NULL) {
    return "initial";
  }
  // An index is a size or a position: a default could make the entry access memory out of bounds.
  bool is_index = strstr(value->type, "index") != NULL;
  if (value->rank < 0) {
    return is_index ? NULL : "random";
  }
  if (value->is_written) {
    return value->is_read ? "zeros" : "poison";
  }
  return value->is_read && !is_index ? "random" : "zeros";
}

// --- numbers ---

// Parses an integer of that dtype as 64 bits; `allow_end` also accepts the maximum plus one, which
// ends a half-open range.
static bool parse_integer(const char *text, aotc_dtype dtype, bool allow_end, uint64_t *out_bits,
                          char out_problem[HARNESS_PROBLEM_TEXT]) {
  if (dtype == AOTC_DTYPE_BOOL && (strcmp(text, "True") == 0 || strcmp(text, "true") == 0)) {
    *out_bits = 1;
    return true;
  }
  if (dtype == AOTC_DTYPE_BOOL && (strcmp(text, "False") == 0 || strcmp(text, "false") == 0)) {
    *out_bits = 0;
    return true;
  }
  bool is_negative = text[0] == '-';
  const char *digits = text + (text[0] == '-' || text[0] == '+');
  uint64_t magnitude;
  bool fits = true;
  if (!harness_parse_unsigned(digits, &magnitude)) {
    // 1e6 and 3.0 are integers, too, as far as a double is exact.
    double real;
    if (!harness_parse_real(text, &real) || real != floor(real)) {
      snprintf(out_problem, HARNESS_PROBLEM_TEXT, "'%s' is not an integer", text);
      return false;
    }
    fits = fabs(real) <= 0x1p53;
    magnitude = fits ? (uint64_t)fabs(real) : 0;
  }
  uint64_t high = harness_integer_high(dtype);
  uint64_t most_negative = 0 - (uint64_t)harness_integer_low(dtype);
  if (allow_end && high < UINT64_MAX) {
    ++high;
  }
  if (!fits || magnitude > (is_negative ? most_negative : high)) {
    snprintf(out_problem, HARNESS_PROBLEM_TEXT, "%s does not fit %s (%lld to %llu)", text,
             harness_facts(dtype)->name, (long long)harness_integer_low(dtype),
             (unsigned long long)harness_integer_high(dtype));
    return false;
  }
  *out_bits = is_negative ? 0 - magnitude : magnitude;
  return true;
}

// A finite value must be finite in the dtype, and an infinite one infinite: some types have NaN
// instead of infinity.
static bool check_fits(const char *text, double number, aotc_dtype dtype,
                       char out_problem[HARNESS_PROBLEM_TEXT]) {
  double storage[2];
  harness_store_real(dtype, storage, 0, number);
  double stored = harness_load_real(dtype, storage, 0);
  bool overflowed = errno == ERANGE && isinf(number);
  bool is_kept = isnan(number) || (isfinite(number) ? isfinite(stored) : isinf(stored));
  if (overflowed || !is_kept) {
    snprintf(out_problem, HARNESS_PROBLEM_TEXT, "%s does not fit %s", text,
             harness_facts(dtype)->name);
    return false;
  }
  return true;
}

static bool parse_real(const char *text, aotc_dtype dtype, double *out_real,
                       char out_problem[HARNESS_PROBLEM_TEXT]) {
  errno = 0;
  if (!harness_parse_real(text, out_real)) {
    snprintf(out_problem, HARNESS_PROBLEM_TEXT, "'%s' is not a number", text);
    return false;
  }
  return check_fits(text, *out_real, dtype, out_problem);
}

// "1.5", "2j", "1-2j", with or without Python's parentheses.
static bool parse_complex(const char *text, aotc_dtype dtype, harness_source *source,
                          char out_problem[HARNESS_PROBLEM_TEXT]) {
  char *end;
  bool has_parenthesis = text[0] == '(';
  const char *start = text + has_parenthesis;
  errno = 0;
  double first = strtod(start, &end), second = 0;
  bool is_good = end != start && !isspace((unsigned char)*start);
  source->real = first;
  source->imaginary = 0;
  if (is_good && *end == 'j') {
    source->real = 0;
    source->imaginary = first;
    ++end;
  } else if (is_good && (*end == '+' || *end == '-')) {
    start = end;
    second = strtod(start, &end);
    is_good = end != start && *end == 'j';
    source->imaginary = second;
    end += is_good;
  }
  if (has_parenthesis && is_good) {
    is_good = *end == ')';
    end += is_good;
  }
  if (!is_good || *end != '\0') {
    snprintf(out_problem, HARNESS_PROBLEM_TEXT, "'%s' is not a complex number, as 1-2j is", text);
    return false;
  }
  return check_fits(text, first, dtype, out_problem) &&
         check_fits(text, second, dtype, out_problem);
}

// --- random:seed=7,low=-1,high=1 ---

typedef struct range_texts {
  char low[HARNESS_NUMBER_TEXT], high[HARNESS_NUMBER_TEXT];
} range_texts;

static bool set_integer_range(harness_source *source, aotc_dtype dtype, const range_texts *texts,
                              char out_problem[HARNESS_PROBLEM_TEXT]) {
  // The defaults fit every dtype: 0 to 99, and for bool 0 to 1.
  uint64_t low = 0, high = dtype == AOTC_DTYPE_BOOL ? 2 : 100;
  if ((texts->low[0] != '\0' && !parse_integer(texts->low, dtype, false, &low, out_problem)) ||
      (texts->high[0] != '\0' && !parse_integer(texts->high, dtype, true, &high, out_problem))) {
    return false;
  }
  // 2^63, which may end a range of int64, is not an int64_t: it is recognized by its text.
  bool is_signed = harness_facts(dtype)->kind == HARNESS_KIND_SIGNED;
  bool is_beyond = high == UINT64_C(1) << 63 && texts->high[0] != '-';
  if (is_signed ? !is_beyond && (int64_t)low >= (int64_t)high : low >= high) {
    snprintf(out_problem, HARNESS_PROBLEM_TEXT,
             is_signed ? "low must be less than high, not %lld and %lld"
                       : "low must be less than high, not %llu and %llu",
             (unsigned long long)low, (unsigned long long)high);
    return false;
  }
  source->integer_low = low;
  source->integer_span = high - low;
  if (source->integer_span == 0) {
    snprintf(out_problem, HARNESS_PROBLEM_TEXT, "high - low must be less than 2^64");
    return false;
  }
  return true;
}

static bool set_real_range(harness_source *source, aotc_dtype dtype, const range_texts *texts,
                           char out_problem[HARNESS_PROBLEM_TEXT]) {
  source->low = 0;
  source->high = 1;
  if ((texts->low[0] != '\0' && !parse_real(texts->low, dtype, &source->low, out_problem)) ||
      (texts->high[0] != '\0' && !parse_real(texts->high, dtype, &source->high, out_problem))) {
    return false;
  }
  if (!isfinite(source->high - source->low) || !(source->low < source->high)) {
    snprintf(out_problem, HARNESS_PROBLEM_TEXT,
             "low must be less than high, both finite, not %g and %g", source->low, source->high);
    return false;
  }
  return true;
}

// Copies "key=value" into the texts, or the seed.
static bool parse_random_item(const char *item, size_t length, harness_source *source,
                              range_texts *texts, char out_problem[HARNESS_PROBLEM_TEXT]) {
  char text[2 * HARNESS_NUMBER_TEXT];
  if (length < sizeof(text)) {
    memcpy(text, item, length);
    text[length] = '\0';
    char *value = strchr(text, '=');
    if (value != NULL && strlen(value + 1) < HARNESS_NUMBER_TEXT && value[1] != '\0') {
      *value++ = '\0';
      if (strcmp(text, "low") == 0) {
        strcpy(texts->low, value);
        return true;
      }
      if (strcmp(text, "high") == 0) {
        strcpy(texts->high, value);
        return true;
      }
      if (strcmp(text, "seed") == 0) {
        if (!harness_parse_unsigned(value, &source->seed)) {
          snprintf(out_problem, HARNESS_PROBLEM_TEXT,
                   "the seed must be an integer from 0 to 18446744073709551615, not '%s'", value);
          return false;
        }
        return true;
      }
    }
  }
  snprintf(out_problem, HARNESS_PROBLEM_TEXT,
           "random takes seed=N, low=X and high=X, separated by commas, not '%.*s'",
           length < 200 ? (int)length : 200, item);
  return false;
}

static bool parse_random(const char *text, aotc_dtype dtype, harness_source *source,
                         char out_problem[HARNESS_PROBLEM_TEXT]) {
  range_texts texts = {.low = "", .high = ""};
  const char *item = text + strlen("random");
  if (*item == ':') {
    do {
      ++item;
      size_t length = strcspn(item, ",");
      if (!parse_random_item(item, length, source, &texts, out_problem)) {
        return false;
      }
      item += length;
    } while (*item == ',');
  }
  return is_integer(dtype) ? set_integer_range(source, dtype, &texts, out_problem)
                           : set_real_range(source, dtype, &texts, out_problem);
}

// --- sources ---

static const struct {
  const char *word;
  harness_source_kind kind;
} words[] = {
    {"zeros", HARNESS_SOURCE_ZEROS},     {"ones", HARNESS_SOURCE_ONES},
    {"arange", HARNESS_SOURCE_ARANGE},   {"poison", HARNESS_SOURCE_POISON},
    {"initial", HARNESS_SOURCE_INITIAL},
};

// Archives of NumPy are treated as files, although they are not supported: the reader reports it.
static bool looks_like_file(const char *text) {
  size_t length = strlen(text);
  const char *ending = length > 4 ? text + length - 4 : "";
  return strchr(text, '/') != NULL || strcmp(ending, ".npy") == 0 || strcmp(ending, ".npz") == 0;
}

// The error message for an invalid source; a number out of range has its own message.
static void describe_unknown(const char *text, char out_problem[HARNESS_PROBLEM_TEXT]) {
  double number;
  if ((text[0] != '\0' && strchr("0123456789+-.(", text[0]) != NULL) ||
      harness_parse_real(text, &number)) {
    return;
  }
  harness_suggestion suggestion = harness_suggest(text);
  harness_suggest_try(&suggestion, "random");
  for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); ++i) {
    harness_suggest_try(&suggestion, words[i].word);
  }
  const char *nearest = harness_suggest_result(&suggestion);
  snprintf(out_problem, HARNESS_PROBLEM_TEXT,
           "'%s' is not a source%s%s%s: give FILE.npy, random[:seed=N,low=X,high=X], zeros, ones, "
           "arange or a number",
           text, nearest != NULL ? " (did you mean '" : "", nearest != NULL ? nearest : "",
           nearest != NULL ? "'?)" : "");
}

bool harness_source_parse(const char *text, const aotc_value *value, uint64_t seed,
                          harness_source *out_source, char out_problem[HARNESS_PROBLEM_TEXT]) {
  *out_source = (harness_source){.kind = HARNESS_SOURCE_NUMBER, .seed = seed};
  for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); ++i) {
    if (strcmp(text, words[i].word) == 0) {
      out_source->kind = words[i].kind;
      if (out_source->kind == HARNESS_SOURCE_INITIAL && value->state == NULL) {
        snprintf(out_problem, HARNESS_PROBLEM_TEXT, "only state has initial values");
        return false;
      }
      return true;
    }
  }
  if (strcmp(text, "random") == 0 || strncmp(text, "random:", strlen("random:")) == 0) {
    out_source->kind = HARNESS_SOURCE_RANDOM;
    out_source->range_text = strchr(text, ':');
    return parse_random(text, value->dtype, out_source, out_problem);
  }
  if (looks_like_file(text)) {
    out_source->kind = HARNESS_SOURCE_FILE;
    out_source->path = text;
    return true;
  }
  bool is_good;
  if (harness_facts(value->dtype)->kind == HARNESS_KIND_COMPLEX) {
    is_good = parse_complex(text, value->dtype, out_source, out_problem);
  } else if (is_integer(value->dtype)) {
    is_good = parse_integer(text, value->dtype, false, &out_source->integer, out_problem);
  } else {
    is_good = parse_real(text, value->dtype, &out_source->real, out_problem);
  }
  if (!is_good) {
    describe_unknown(text, out_problem);
  }
  return is_good;
}

const char *harness_source_text(const harness_source *source, const char *given,
                                char out[HARNESS_PROBLEM_TEXT]) {
  if (source->kind == HARNESS_SOURCE_RANDOM && strstr(given, "seed=") == NULL) {
    const char *range = source->range_text;
    snprintf(out, HARNESS_PROBLEM_TEXT, "random:seed=%llu%s%s", (unsigned long long)source->seed,
             range != NULL ? "," : "", range != NULL ? range + 1 : "");
  } else {
    snprintf(out, HARNESS_PROBLEM_TEXT, "%s", given);
  }
  return out;
}

// The same value for all elements.
static void fill_number(const harness_source *source, aotc_dtype dtype, void *data,
                        uint64_t count) {
  if (count == 0) {
    return;
  }
  if (is_integer(dtype)) {
    harness_store_integer(dtype, data, 0, source->integer);
  } else {
    harness_store_real(dtype, data, 0, source->real);
    if (harness_facts(dtype)->kind == HARNESS_KIND_COMPLEX) {
      harness_store_real(dtype, data, 1, source->imaginary);
    }
  }
  harness_repeat_first(dtype, data, count);
}

// Like np.arange(n).astype(dtype): integers wrap, bool is false for 0 only.
static void fill_arange(aotc_dtype dtype, void *data, uint64_t count) {
  bool is_complex = harness_facts(dtype)->kind == HARNESS_KIND_COMPLEX;
  for (uint64_t i = 0; i < count; ++i) {
    if (dtype == AOTC_DTYPE_BOOL) {
      harness_store_integer(dtype, data, i, i != 0);
    } else if (is_integer(dtype)) {
      harness_store_integer(dtype, data, i, i);
    } else if (is_complex) {
      harness_store_real(dtype, data, 2 * i, (double)i);
      harness_store_real(dtype, data, 2 * i + 1, 0);
    } else {
      harness_store_real(dtype, data, i, (double)i);
    }
  }
}

void harness_source_fill(const harness_source *source, const char *name, aotc_dtype dtype,
                         void *data, uint64_t count) {
  harness_source number = {.kind = HARNESS_SOURCE_NUMBER};
  switch (source->kind) {
  case HARNESS_SOURCE_POISON:
    harness_poison(dtype, data, count);
    break;
  case HARNESS_SOURCE_RANDOM: {
    uint64_t key = harness_generator_key(source->seed, name);
    if (is_integer(dtype)) {
      harness_generator_integers(key, source->integer_low, source->integer_span, dtype, data,
                                 count);
    } else {
      harness_generator_reals(key, source->low, source->high, dtype, data, count);
    }
    break;
  }
  case HARNESS_SOURCE_ARANGE:
    fill_arange(dtype, data, count);
    break;
  case HARNESS_SOURCE_ONES:
    number.integer = 1;
    number.real = 1;
    fill_number(&number, dtype, data, count);
    break;
  case HARNESS_SOURCE_NUMBER:
    fill_number(source, dtype, data, count);
    break;
  case HARNESS_SOURCE_ZEROS:
  case HARNESS_SOURCE_FILE: // a file's values are read, not made
  case HARNESS_SOURCE_INITIAL:
    fill_number(&number, dtype, data, count);
    break;
  }
}
