#include "report.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "compare.h"
#include "describe.h"
#include "json.h"
#include "npy.h"
#include "print.h"
#include "statistics.h"

// Enough digits to recognize a number; --json prints all of them.
#define DIGITS 8

typedef struct report {
  FILE *stream;
  const harness_plan *plan;
  harness_outcome *outcome;
  harness_comparison *comparisons; // one for each target
  bool has_passed;
  harness_spread device_spread, wall_spread; // if there were timed calls
} report;

static bool write_outs(const report *self) {
  const harness_options *options = self->plan->options;
  bool is_good = true;
  for (int32_t i = 0; i < harness_target_count(self->plan->entry); ++i) {
    harness_output output;
    if (options->outs[i] == NULL) {
      continue;
    }
    if (!harness_output_open(&output, options->outs[i])) {
      is_good = false;
      continue;
    }
    bool is_written = harness_npy_write(output.stream, &self->outcome->arrays[i]);
    is_good = harness_output_close(&output, is_written) && is_good;
  }
  return is_good;
}

// --- comparisons ---

static const char *tolerance_text(const harness_tolerance *tolerance,
                                  char out[3 * HARNESS_NUMBER_TEXT]) {
  if (tolerance->is_exact) {
    return strcpy(out, "only equal elements pass");
  }
  snprintf(out, 3 * HARNESS_NUMBER_TEXT, "rtol %g, atol %g", tolerance->rtol, tolerance->atol);
  return out;
}

// "0.25 at [3, 5] (got 1.5, expected 1.25)"
static char *error_text(const report *self, int32_t target, uint64_t index, double error) {
  const harness_array *got = &self->outcome->arrays[target];
  const harness_array *expected = &self->plan->expected[target];
  char where[HARNESS_SHAPE_TEXT], number[HARNESS_NUMBER_TEXT];
  char one[HARNESS_NUMBER_TEXT], other[HARNESS_NUMBER_TEXT];
  bool is_scalar = harness_target(self->plan->entry, target)->rank <= 0;
  return harness_string("%s%s%s (got %s, expected %s)", harness_real_text(error, DIGITS, number),
                        is_scalar ? "" : " at ",
                        is_scalar ? "" : harness_index_text(got->rank, got->shape, index, where),
                        harness_element_text(got->dtype, got->data, index, 0, one),
                        harness_element_text(expected->dtype, expected->data, index, 0, other));
}

// The used part of the tolerance: a percentage if it is allowed, otherwise a multiple.
static const char *share_text(double share, char out[HARNESS_NUMBER_TEXT]) {
  if (share <= 1) {
    snprintf(out, HARNESS_NUMBER_TEXT, "%.3g%% of the tolerance", 100 * share);
  } else {
    snprintf(out, HARNESS_NUMBER_TEXT, "%.3g times the tolerance", share);
  }
  return out;
}

static void tell_match(const report *self, int32_t target) {
  const harness_comparison *result = &self->comparisons[target];
  const char *name = harness_target(self->plan->entry, target)->name;
  const char *path = self->plan->options->expects[target];
  char tolerance[3 * HARNESS_NUMBER_TEXT], share[HARNESS_NUMBER_TEXT];
  if (result->count == 0 || result->largest_error == 0) {
    fprintf(self->stream, "%s matches %s: all %llu elements are equal\n", name, path,
            (unsigned long long)result->count);
    return;
  }
  char *error = error_text(self, target, result->largest_error_index, result->largest_error);
  fprintf(self->stream, "%s matches %s: largest error %s, at most %s is used (%s)\n", name, path,
          error, share_text(result->tolerance_used, share),
          tolerance_text(&result->tolerance, tolerance));
  free(error);
}

static void tell_mismatch(const report *self, int32_t target) {
  const harness_comparison *result = &self->comparisons[target];
  char tolerance[3 * HARNESS_NUMBER_TEXT], share[HARNESS_NUMBER_TEXT];
  char *error = error_text(self, target, result->largest_error_index, result->largest_error);
  char *use = harness_string("%s", "");
  if (isfinite(result->tolerance_used)) {
    free(use);
    if (result->tolerance_used_index == result->largest_error_index) {
      use = harness_string(", %s", share_text(result->tolerance_used, share));
    } else {
      char *worst = error_text(self, target, result->tolerance_used_index, NAN);
      // Only the position and the values: "nan at ..." starts with the error, which is omitted.
      use = harness_string("; %s%s", share_text(result->tolerance_used, share),
                           worst + strlen("nan"));
      free(worst);
    }
  }
  char *nan = harness_string("%s", "");
  if (result->nan_count_got > 0 || result->nan_count_expected > 0) {
    free(nan);
    nan = harness_string("; NaN in %llu elements of the result and %llu of the file",
                         (unsigned long long)result->nan_count_got,
                         (unsigned long long)result->nan_count_expected);
  }
  harness_error("'%s' differs from %s in %llu of %llu elements (%s): largest error %s%s%s",
                harness_target(self->plan->entry, target)->name,
                self->plan->options->expects[target], (unsigned long long)result->mismatch_count,
                (unsigned long long)result->count, tolerance_text(&result->tolerance, tolerance),
                error, use, nan);
  free(error);
  free(use);
  free(nan);
}

// Fills self->comparisons; false if a result and its expected array have different shapes.
static bool compare_all(report *self) {
  const harness_options *options = self->plan->options;
  for (int32_t i = 0; i < harness_target_count(self->plan->entry); ++i) {
    const harness_array *got = &self->outcome->arrays[i], *expected = &self->plan->expected[i];
    if (expected->data == NULL) {
      continue;
    }
    // A result of dynamic shape: its shape can be compared only now.
    if (got->rank != expected->rank ||
        memcmp(got->shape, expected->shape, (size_t)got->rank * sizeof(int64_t)) != 0) {
      char one[HARNESS_SHAPE_TEXT], other[HARNESS_SHAPE_TEXT];
      harness_error("'%s' has shape %s; '%s' holds shape %s",
                    harness_target(self->plan->entry, i)->name,
                    harness_shape_text(got->rank, got->shape, one), options->expects[i],
                    harness_shape_text(expected->rank, expected->shape, other));
      return false;
    }
    harness_tolerance tolerance =
        harness_tolerance_for(got->dtype, options->has_rtol ? &options->rtol : NULL,
                              options->has_atol ? &options->atol : NULL);
    self->comparisons[i] = harness_compare(got, expected, tolerance);
    self->has_passed = self->has_passed && self->comparisons[i].has_passed;
  }
  return true;
}

// --- text ---

static char *mean_text(const harness_array *array, const harness_statistics *statistics) {
  char real[HARNESS_NUMBER_TEXT], imaginary[HARNESS_NUMBER_TEXT];
  harness_real_text(statistics->mean, DIGITS, real);
  if (harness_facts(array->dtype)->kind != HARNESS_KIND_COMPLEX) {
    return harness_string("%s", real);
  }
  harness_real_text(statistics->mean_imaginary, DIGITS, imaginary);
  return harness_string("(%s%s%sj)", real, imaginary[0] == '-' ? "" : "+", imaginary);
}

static void print_results(const report *self) {
  static const char *const titles[] = {"result", "type", "shape", "crc32",
                                       "min",    "max",  "mean",  ""};
  harness_table table = {.columns = (int)(sizeof(titles) / sizeof(titles[0]))};
  for (int i = 0; i < table.columns; ++i) {
    harness_table_add(&table, harness_string("%s", titles[i]));
  }
  for (int32_t i = 0; i < harness_target_count(self->plan->entry); ++i) {
    const harness_array *array = &self->outcome->arrays[i];
    if (array->data == NULL) {
      continue;
    }
    const aotc_value *value = harness_target(self->plan->entry, i);
    harness_statistics statistics = harness_statistics_of(array);
    char shape[HARNESS_SHAPE_TEXT], number[HARNESS_NUMBER_TEXT];
    harness_table_add(&table, harness_string("%s", value->name));
    harness_table_add(&table, harness_string("%s", value->type));
    harness_table_add(
        &table, harness_string("%s", value->rank < 0
                                         ? "scalar"
                                         : harness_shape_text(array->rank, array->shape, shape)));
    harness_table_add(&table, harness_string("%08x", (unsigned)statistics.crc32));
    const uint64_t indices[] = {statistics.min_index, statistics.max_index};
    for (int j = 0; j < 2; ++j) {
      bool has_values = statistics.has_values;
      harness_table_add(
          &table, harness_string("%s", has_values ? harness_element_text(array->dtype, array->data,
                                                                         indices[j], DIGITS, number)
                                                  : "-"));
    }
    harness_table_add(&table,
                      statistics.has_values ? mean_text(array, &statistics) : harness_string("-"));
    harness_table_add(&table,
                      statistics.nan_count > 0
                          ? harness_string("%llu NaN", (unsigned long long)statistics.nan_count)
                          : harness_string("%s", ""));
  }
  if (table.cell_count > table.columns) {
    harness_table_print(&table, self->stream, "");
  } else {
    harness_table_discard(&table);
    fputs("no results\n", self->stream);
  }
}

// Four digits exceed the precision of clocks; whole milliseconds are printed completely.
static const char *time_text(double milliseconds, char out[HARNESS_NUMBER_TEXT]) {
  snprintf(out, HARNESS_NUMBER_TEXT, milliseconds < 1000 ? "%.4g" : "%.0f", milliseconds);
  return out;
}

static void print_spread(FILE *stream, const char *what, double first,
                         const harness_spread *spread) {
  char one[HARNESS_NUMBER_TEXT], median[HARNESS_NUMBER_TEXT], min[HARNESS_NUMBER_TEXT];
  char p10[HARNESS_NUMBER_TEXT], p90[HARNESS_NUMBER_TEXT];
  fprintf(stream, "%-12s first %s ms, then median %s ms, min %s, p10-p90 %s to %s\n", what,
          time_text(first, one), time_text(spread->median, median), time_text(spread->min, min),
          time_text(spread->p10, p10), time_text(spread->p90, p90));
}

static void print_times(const report *self) {
  const harness_options *options = self->plan->options;
  if (options->repeat == 0) {
    return;
  }
  fprintf(self->stream, "%llu timed calls after the first\n", (unsigned long long)options->repeat);
  print_spread(self->stream, "device time:", self->outcome->first.device_milliseconds,
               &self->device_spread);
  print_spread(self->stream, "wall time:", self->outcome->first.wall_milliseconds,
               &self->wall_spread);
}

static void print_text(const report *self) {
  const harness_options *options = self->plan->options;
  const aotc_device *device = &self->outcome->device;
  char text[32];
  bool is_cpu = device->kind == AOTC_DEVICE_CPU;
  fprintf(self->stream, "%s on %s%s%s%s\n", self->plan->entry->name,
          harness_device_text(device, text), is_cpu ? "" : " (", is_cpu ? "" : device->name,
          is_cpu ? "" : ")");
  print_results(self);
  for (int32_t i = 0; i < harness_target_count(self->plan->entry); ++i) {
    if (options->prints[i]) {
      harness_print(self->stream, harness_target(self->plan->entry, i)->name,
                    &self->outcome->arrays[i]);
    }
  }
  print_times(self);
  for (int32_t i = 0; i < harness_target_count(self->plan->entry); ++i) {
    if (options->expects[i] != NULL && self->comparisons[i].has_passed) {
      tell_match(self, i);
    }
  }
}

// --- JSON ---

static void comparison_json(harness_json *json, const report *self, int32_t target) {
  const harness_comparison *result = &self->comparisons[target];
  const harness_array *got = &self->outcome->arrays[target];
  const harness_array *expected = &self->plan->expected[target];
  harness_json_open(json, "comparison", '{');
  harness_json_string(json, "file", self->plan->options->expects[target]);
  harness_json_bool(json, "passed", result->has_passed);
  harness_json_bool(json, "is_exact", result->tolerance.is_exact);
  harness_json_real(json, "rtol", result->tolerance.rtol);
  harness_json_real(json, "atol", result->tolerance.atol);
  harness_json_unsigned(json, "count", result->count);
  harness_json_unsigned(json, "mismatch_count", result->mismatch_count);
  harness_json_unsigned(json, "nan_count_got", result->nan_count_got);
  harness_json_unsigned(json, "nan_count_expected", result->nan_count_expected);
  harness_json_real(json, "largest_error", result->largest_error);
  harness_json_real(json, "tolerance_used", result->tolerance_used);
  const char *const keys[] = {"at_largest_error", "at_tolerance_used"};
  const uint64_t indices[] = {result->largest_error_index, result->tolerance_used_index};
  for (int i = 0; i < 2; ++i) {
    if (result->count == 0) {
      harness_json_null(json, keys[i]);
      continue;
    }
    int64_t position[HARNESS_MAX_RANK];
    uint64_t rest = indices[i];
    for (int32_t j = got->rank - 1; j >= 0; --j) {
      position[j] = (int64_t)(rest % (uint64_t)got->shape[j]);
      rest /= (uint64_t)got->shape[j];
    }
    harness_json_open(json, keys[i], '{');
    harness_json_shape(json, "index", got->rank, position);
    harness_json_element(json, "got", got, indices[i]);
    harness_json_element(json, "expected", expected, indices[i]);
    harness_json_close(json, '}');
  }
  harness_json_close(json, '}');
}

static void result_json(harness_json *json, const report *self, int32_t target) {
  const harness_options *options = self->plan->options;
  const aotc_value *value = harness_target(self->plan->entry, target);
  const harness_array *array = &self->outcome->arrays[target];
  harness_statistics statistics = harness_statistics_of(array);
  char checksum[16];
  snprintf(checksum, sizeof(checksum), "%08x", (unsigned)statistics.crc32);
  harness_json_open(json, NULL, '{');
  harness_json_string(json, "name", value->name);
  harness_json_string(json, "type", value->type);
  harness_json_string(json, "dtype", harness_facts(value->dtype)->name);
  harness_json_shape(json, "shape", array->rank, array->shape);
  harness_json_string(json, "crc32", checksum);
  if (statistics.has_values) {
    harness_json_element(json, "min", array, statistics.min_index);
    harness_json_element(json, "max", array, statistics.max_index);
  } else {
    harness_json_null(json, "min");
    harness_json_null(json, "max");
  }
  if (!statistics.has_values) {
    harness_json_null(json, "mean");
  } else if (harness_facts(array->dtype)->kind == HARNESS_KIND_COMPLEX) {
    harness_json_open(json, "mean", '[');
    harness_json_real(json, NULL, statistics.mean);
    harness_json_real(json, NULL, statistics.mean_imaginary);
    harness_json_close(json, ']');
  } else {
    harness_json_real(json, "mean", statistics.mean);
  }
  harness_json_unsigned(json, "nan_count", statistics.nan_count);
  harness_json_string(json, "file", options->outs[target]);
  if (options->prints[target]) {
    harness_json_array(json, "values", array);
  }
  if (options->expects[target] != NULL) {
    comparison_json(json, self, target);
  } else {
    harness_json_null(json, "comparison");
  }
  harness_json_close(json, '}');
}

static void spread_json(harness_json *json, const char *key, const harness_spread *spread) {
  harness_json_open(json, key, '{');
  harness_json_real(json, "median", spread->median);
  harness_json_real(json, "min", spread->min);
  harness_json_real(json, "p10", spread->p10);
  harness_json_real(json, "p90", spread->p90);
  harness_json_real(json, "max", spread->max);
  harness_json_close(json, '}');
}

static void times_json(harness_json *json, const report *self) {
  const harness_options *options = self->plan->options;
  harness_json_open(json, "times", '{');
  harness_json_open(json, "first_call", '{');
  harness_json_real(json, "device_ms", self->outcome->first.device_milliseconds);
  harness_json_real(json, "wall_ms", self->outcome->first.wall_milliseconds);
  harness_json_close(json, '}');
  harness_json_unsigned(json, "warmup", options->warmup);
  harness_json_unsigned(json, "repeat", options->repeat);
  if (options->repeat > 0) {
    spread_json(json, "device_ms", &self->device_spread);
    spread_json(json, "wall_ms", &self->wall_spread);
  } else {
    harness_json_null(json, "device_ms");
    harness_json_null(json, "wall_ms");
  }
  harness_json_close(json, '}');
}

static void print_json(const report *self) {
  const aotc_entry *entry = self->plan->entry;
  harness_json json = {.stream = self->stream};
  harness_json_open(&json, NULL, '{');
  harness_json_string(&json, "program", aotc_harness_program.name);
  harness_json_string(&json, "aotc_version", aotc_harness_program.version);
  harness_json_string(&json, "entry", entry->name);
  harness_json_device(&json, "device", &self->outcome->device);
  harness_json_unsigned(&json, "seed", self->plan->options->seed);
  harness_json_open(&json, "arguments", '[');
  bool has_expected = false;
  for (int32_t i = 0; i < entry->argument_count; ++i) {
    const harness_input *input = &self->plan->inputs[i];
    char source[HARNESS_PROBLEM_TEXT];
    harness_json_open(&json, NULL, '{');
    harness_json_string(&json, "name", input->value->name);
    harness_json_string(&json, "type", input->value->type);
    harness_json_string(&json, "dtype", harness_facts(input->value->dtype)->name);
    harness_json_shape(&json, "shape", input->array.rank, input->array.shape);
    harness_json_string(&json, "source",
                        harness_source_text(&input->source, input->source_given, source));
    harness_json_close(&json, '}');
  }
  harness_json_close(&json, ']');
  harness_json_open(&json, "results", '[');
  for (int32_t i = 0; i < harness_target_count(entry); ++i) {
    has_expected |= self->plan->expected[i].data != NULL;
    if (self->outcome->arrays[i].data != NULL) {
      result_json(&json, self, i);
    }
  }
  harness_json_close(&json, ']');
  times_json(&json, self);
  if (has_expected) {
    harness_json_bool(&json, "passed", self->has_passed);
  } else {
    harness_json_null(&json, "passed");
  }
  harness_json_close(&json, '}');
}

static void take_spreads(report *self) {
  uint64_t count = self->plan->options->repeat;
  if (count == 0) {
    return;
  }
  double *samples = harness_zeroed(count, sizeof(double));
  for (uint64_t i = 0; i < count; ++i) {
    samples[i] = self->outcome->times[i].device_milliseconds;
  }
  self->device_spread = harness_spread_of(samples, count);
  for (uint64_t i = 0; i < count; ++i) {
    samples[i] = self->outcome->times[i].wall_milliseconds;
  }
  self->wall_spread = harness_spread_of(samples, count);
  free(samples);
}

int harness_report(FILE *stream, const harness_plan *plan, harness_outcome *outcome) {
  size_t targets = (size_t)harness_target_count(plan->entry);
  report self = {
      .stream = stream,
      .plan = plan,
      .outcome = outcome,
      .comparisons = harness_zeroed(targets, sizeof(harness_comparison)),
      .has_passed = true,
  };
  // The files first, because they are needed to examine a mismatch.
  bool is_written = write_outs(&self);
  int code = HARNESS_USAGE;
  if (compare_all(&self)) {
    take_spreads(&self);
    if (plan->options->json) {
      print_json(&self);
    } else {
      print_text(&self);
    }
    for (int32_t i = 0; i < harness_target_count(plan->entry); ++i) {
      if (plan->options->expects[i] != NULL && !self.comparisons[i].has_passed) {
        tell_mismatch(&self, i);
      }
    }
    code = !is_written ? HARNESS_USAGE : self.has_passed ? HARNESS_OK : HARNESS_MISMATCH;
  }
  free(self.comparisons);
  return code;
}
