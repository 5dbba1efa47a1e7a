#include "plan.h"

#include <stdlib.h>
#include <string.h>

#include "npy.h"
#include "rank.h"
#include "text.h"

// A shape, and whether it is known.
typedef struct shape {
  int32_t rank;
  int64_t sizes[HARNESS_MAX_RANK];
  bool is_known;
} shape;

// --- shapes ---

// Reads "128x64" for a value, whose static dimensions must agree.
static bool parse_dimensions(const aotc_value *value, const char *text, shape *out_shape) {
  const char *at = text;
  int32_t rank = 0;
  bool is_good = true, is_end = false;
  while (is_good && !is_end) {
    char digits[24];
    size_t length = strcspn(at, "x");
    uint64_t size = 0;
    is_good = length < sizeof(digits) && rank < HARNESS_MAX_RANK;
    if (is_good) {
      memcpy(digits, at, length);
      digits[length] = '\0';
      is_good = harness_parse_unsigned(digits, &size) && size <= INT64_MAX;
      out_shape->sizes[rank++] = (int64_t)size;
    }
    is_end = at[length] == '\0';
    at += length + 1;
  }
  if (!is_good) {
    harness_error("--dim %s: '%s' is not a shape, as 128x64 is", value->name, text);
    return false;
  }
  if (value->rank < 1) {
    harness_error("--dim %s: '%s' is %s and has no dimensions", value->name, value->name,
                  value->type);
    return false;
  }
  is_good = rank == value->rank;
  for (int32_t i = 0; is_good && i < rank; ++i) {
    is_good = value->shape[i] == AOTC_DYNAMIC || value->shape[i] == out_shape->sizes[i];
  }
  if (!is_good) {
    harness_error("--dim %s: %s does not fit '%s', which is %s", value->name, text, value->name,
                  value->type);
    return false;
  }
  out_shape->rank = rank;
  out_shape->is_known = true;
  return true;
}

static bool is_dynamic(const aotc_value *value) {
  for (int32_t i = 0; i < value->rank; ++i) {
    if (value->shape[i] == AOTC_DYNAMIC) {
      return true;
    }
  }
  return false;
}

// "128x?" with a letter for every dimension that the user must give: "NxM".
static char *dimension_pattern(const aotc_value *value) {
  static const char letters[] = "NMKLPQRS";
  char *pattern = harness_string("%s", "");
  size_t used = 0;
  for (int32_t i = 0; i < value->rank; ++i) {
    const char *cross = i > 0 ? "x" : "";
    char *longer;
    if (value->shape[i] == AOTC_DYNAMIC) {
      longer = harness_string("%s%s%c", pattern, cross, letters[used++ % (sizeof(letters) - 1)]);
    } else {
      longer = harness_string("%s%s%lld", pattern, cross, (long long)value->shape[i]);
    }
    free(pattern);
    pattern = longer;
  }
  return pattern;
}

// --- files ---

// Whether the header's shape matches the wanted sizes (AOTC_DYNAMIC: any size).
static bool shape_fits(const harness_npy_header *header, int32_t rank, const int64_t *sizes) {
  bool fits = header->rank == (rank < 0 ? 0 : rank);
  for (int32_t i = 0; fits && i < rank; ++i) {
    fits = sizes[i] == AOTC_DYNAMIC || sizes[i] == header->shape[i];
  }
  return fits;
}

#define PART "part:"

// Parses "part:1:B.npy", this process's part of the file along dimension 1. Stores the file's path
// in *path, and the dimension in *out_axis, which is -1 for a whole file.
static bool parse_part(const char *option, const char **path, long long *out_axis) {
  *out_axis = -1;
  if (strncmp(*path, PART, strlen(PART)) != 0) {
    return true;
  }
  const char *digits = *path + strlen(PART);
  size_t length = strspn(digits, "0123456789");
  if (length == 0 || length > 2 || digits[length] != ':') {
    harness_error("%s: expected part:DIMENSION:FILE.npy, got '%s'", option, *path);
    return false;
  }
  *out_axis = strtoll(digits, NULL, 10);
  *path = digits + length + 1;
  return true;
}

// Selects this process's part of the file.
static bool take_part(const char *option, const char *path, long long axis,
                      harness_npy_file *file) {
  long long rank, count;
  char problem[HARNESS_PROBLEM_TEXT];
  if (!harness_find_processes(&rank, &count)) {
    harness_error("%s: the launcher does not tell how many processes there are", option);
    return false;
  }
  if (!harness_npy_take_part(file, axis, rank, count, problem)) {
    harness_error("%s: cannot read a part of '%s': %s", option, path, problem);
    return false;
  }
  return true;
}

// Reads a file for a value of the shape `sizes`. `option` names it in messages.
static bool read_file(const char *option, const aotc_value *value, int32_t rank,
                      const int64_t *sizes, const char *path, harness_array *out_array) {
  char problem[HARNESS_PROBLEM_TEXT];
  harness_npy_file file;
  long long axis;
  if (!parse_part(option, &path, &axis)) {
    return false;
  }
  if (!harness_npy_open(path, &file, problem)) {
    harness_error("%s: cannot read '%s': %s", option, path, problem);
    return false;
  }
  if (axis >= 0 && !take_part(option, path, axis, &file)) {
    harness_npy_close(&file);
    return false;
  }
  const harness_npy_header *header = &file.header;
  bool is_good = harness_npy_holds(header, value->dtype) && shape_fits(header, rank, sizes);
  if (!is_good) {
    char wanted[HARNESS_SHAPE_TEXT], held[HARNESS_SHAPE_TEXT];
    harness_error("%s: '%s' is %s and takes %s of shape %s; '%s' holds %s of shape %s", option,
                  value->name, value->type, harness_facts(value->dtype)->name,
                  harness_shape_text(rank, sizes, wanted), path, harness_npy_dtype_name(header),
                  harness_shape_text(header->rank, header->shape, held));
  } else {
    uint64_t count, bytes;
    // Before memory is allocated: a header may claim any size.
    if (harness_shape_size(value->dtype, header->rank, header->shape, &count, &bytes) &&
        !harness_npy_check_size(&file, bytes, problem)) {
      harness_error("%s: cannot read '%s': %s", option, path, problem);
      is_good = false;
    }
    is_good = is_good && harness_array_allocate(out_array, value->name, value->dtype, header->rank,
                                                header->shape);
    if (is_good && !harness_npy_read(&file, out_array, problem)) {
      harness_error("%s: cannot read '%s': %s", option, path, problem);
      is_good = false;
    }
  }
  harness_npy_close(&file);
  return is_good;
}

// --- arguments ---

static bool choose_source(const harness_options *options, int32_t index, harness_input *input) {
  const aotc_value *value = input->value;
  const char *text = options->sources[index];
  if (text == NULL) {
    text = harness_source_default(value);
  }
  bool needs_arg = harness_is_option_name(value->name);
  if (text == NULL) {
    harness_error("'%s' is of type %s, and a guess could lead outside of a buffer: give it, as "
                  "%s%s%sNUMBER",
                  value->name, value->type, needs_arg ? "--arg " : "--", value->name,
                  needs_arg ? "=" : " ");
    return false;
  }
  char problem[HARNESS_PROBLEM_TEXT];
  input->source_given = text;
  if (!harness_source_parse(text, value, options->seed, &input->source, problem)) {
    harness_error("--%s: %s ('%s' is %s)", value->name, problem, value->name, value->type);
    return false;
  }
  return true;
}

static bool make_input(const harness_options *options, int32_t index, harness_input *input) {
  const aotc_value *value = input->value;
  if (!choose_source(options, index, input)) {
    return false;
  }
  shape sizes = {.rank = value->rank, .is_known = !is_dynamic(value)};
  for (int32_t i = 0; i < value->rank; ++i) {
    sizes.sizes[i] = value->shape[i];
  }
  const char *given = options->dimensions[index];
  if (given != NULL && !parse_dimensions(value, given, &sizes)) {
    return false;
  }
  if (input->source.kind == HARNESS_SOURCE_FILE) {
    char *option = harness_string("--%s", value->name);
    bool is_good =
        read_file(option, value, sizes.rank, sizes.sizes, input->source.path, &input->array);
    free(option);
    return is_good;
  }
  if (!sizes.is_known) {
    char *pattern = dimension_pattern(value);
    bool needs_arg = harness_is_option_name(value->name);
    harness_error("the shape of '%s' is not known, it is %s: give --dim %s=%s, or %s%s%sFILE.npy",
                  value->name, value->type, value->name, pattern, needs_arg ? "--arg " : "--",
                  value->name, needs_arg ? "=" : " ");
    free(pattern);
    return false;
  }
  return harness_array_allocate(&input->array, value->name, value->dtype, sizes.rank, sizes.sizes);
}

// --- results ---

// The required shape of a target: an argument's is known here, a result's may not be.
static shape target_shape(const harness_plan *plan, int32_t target) {
  const aotc_value *value = harness_target(plan->entry, target);
  shape sizes = {.rank = value->rank, .is_known = true};
  for (int32_t i = 0; i < value->rank; ++i) {
    bool is_argument = target < plan->entry->argument_count;
    sizes.sizes[i] = is_argument ? plan->inputs[target].array.shape[i] : value->shape[i];
  }
  return sizes;
}

static bool check_outs(const harness_plan *plan) {
  const harness_options *options = plan->options;
  bool is_good = true;
  for (int32_t i = 0; i < harness_target_count(plan->entry); ++i) {
    const char *path = options->outs[i];
    if (path == NULL) {
      continue;
    }
    is_good = harness_output_check(path) && is_good;
    for (int32_t j = 0; j < i; ++j) {
      if (options->outs[j] != NULL && strcmp(options->outs[j], path) == 0) {
        harness_error("--out names '%s' for both '%s' and '%s'", path,
                      harness_target(plan->entry, j)->name, harness_target(plan->entry, i)->name);
        is_good = false;
      }
    }
  }
  return is_good;
}

static bool read_expected(harness_plan *plan) {
  bool is_good = true;
  for (int32_t i = 0; i < harness_target_count(plan->entry); ++i) {
    const char *path = plan->options->expects[i];
    if (path != NULL) {
      shape sizes = target_shape(plan, i);
      is_good = read_file("--expect", harness_target(plan->entry, i), sizes.rank, sizes.sizes, path,
                          &plan->expected[i]) &&
                is_good;
    }
  }
  return is_good;
}

int harness_plan_make(const harness_options *options, harness_plan *out_plan) {
  const aotc_entry *entry = options->entry;
  *out_plan = (harness_plan){
      .options = options,
      .entry = entry,
      .inputs = harness_zeroed((size_t)entry->argument_count, sizeof(harness_input)),
      .expected = harness_zeroed((size_t)harness_target_count(entry), sizeof(harness_array)),
  };
  bool is_good = true;
  for (int32_t i = 0; i < harness_target_count(entry); ++i) {
    const aotc_value *value = harness_target(entry, i);
    if (value->rank > HARNESS_MAX_RANK) {
      harness_error("'%s' is %s; the harness takes up to %d dimensions", value->name, value->type,
                    HARNESS_MAX_RANK);
      return HARNESS_USAGE;
    }
  }
  for (int32_t i = 0; i < entry->argument_count; ++i) {
    out_plan->inputs[i].value = &entry->arguments[i];
    is_good = make_input(options, i, &out_plan->inputs[i]) && is_good;
  }
  // Without the arguments' shapes, those of expected arrays cannot be checked.
  is_good = check_outs(out_plan) && is_good;
  is_good = is_good && read_expected(out_plan);
  return is_good ? HARNESS_OK : HARNESS_USAGE;
}

// The initial value of a field of the state, from the table.
static void fill_initial(harness_input *input) {
  const aotc_state_type *type = aotc_harness_program.state;
  for (int32_t i = 0; i < type->field_count; ++i) {
    const aotc_state_field *field = &type->fields[i];
    if (strcmp(field->value.name, input->value->state) == 0) {
      char *data = input->array.data;
      for (uint64_t at = 0; at < field->value.bytes; at += field->initial_bytes) {
        memcpy(data + at, field->initial, field->initial_bytes);
      }
    }
  }
}

void harness_plan_fill(harness_plan *plan) {
  for (int32_t i = 0; i < plan->entry->argument_count; ++i) {
    harness_input *input = &plan->inputs[i];
    if (input->source.kind == HARNESS_SOURCE_INITIAL) {
      fill_initial(input);
    } else if (input->source.kind != HARNESS_SOURCE_FILE) {
      harness_source_fill(&input->source, input->value->name, input->array.dtype, input->array.data,
                          input->array.count);
    }
  }
}

void harness_plan_free(harness_plan *plan) {
  if (plan->entry == NULL) {
    return;
  }
  for (int32_t i = 0; i < plan->entry->argument_count; ++i) {
    harness_array_free(&plan->inputs[i].array);
  }
  for (int32_t i = 0; i < harness_target_count(plan->entry); ++i) {
    harness_array_free(&plan->expected[i]);
  }
  free(plan->inputs);
  free(plan->expected);
  *plan = (harness_plan){0};
}
