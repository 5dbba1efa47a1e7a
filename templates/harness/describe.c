#include "describe.h"

#include <stdlib.h>
#include <string.h>

#include "elements.h"
#include "json.h"
#include "source.h"

// --- tables ---

void harness_table_add(harness_table *table, char *cell) {
  int used = table->cell_count;
  if (used == table->capacity) {
    int capacity = table->capacity > 0 ? 2 * table->capacity : 32;
    char **cells = harness_zeroed((size_t)capacity, sizeof(char *));
    if (used > 0) {
      memcpy(cells, table->cells, (size_t)used * sizeof(char *));
    }
    free(table->cells);
    table->cells = cells;
    table->capacity = capacity;
  }
  table->cells[used] = cell;
  ++table->cell_count;
}

void harness_table_print(harness_table *table, FILE *stream, const char *indent) {
  size_t *widths = harness_zeroed((size_t)table->columns, sizeof(size_t));
  for (int i = 0; i < table->cell_count; ++i) {
    size_t width = strlen(table->cells[i]);
    size_t *widest = &widths[i % table->columns];
    *widest = width > *widest ? width : *widest;
  }
  for (int i = 0; i < table->cell_count; ++i) {
    int column = i % table->columns;
    bool is_last = column == table->columns - 1;
    // The last cell of a line is not padded.
    for (int next = column + 1; !is_last && next < table->columns; ++next) {
      if (table->cells[i - column + next][0] != '\0') {
        break;
      }
      is_last = next == table->columns - 1;
    }
    if (column == 0) {
      fputs(indent, stream);
    }
    fprintf(stream, "%-*s", is_last ? 0 : (int)widths[column] + 2, table->cells[i]);
    if (column == table->columns - 1) {
      fputc('\n', stream);
    }
  }
  free(widths);
  harness_table_discard(table);
}

void harness_table_discard(harness_table *table) {
  for (int i = 0; i < table->cell_count; ++i) {
    free(table->cells[i]);
  }
  free(table->cells);
  *table = (harness_table){.columns = table->columns};
}

// --- names of the values in the table ---

const char *harness_device_text(const aotc_device *device, char out[32]) {
  if (device->kind == AOTC_DEVICE_CPU) {
    return strcpy(out, "cpu");
  }
  snprintf(out, 32, "cuda:%d", (int)device->ordinal);
  return out;
}

static const char *memory_text(aotc_memory_kind memory) {
  return memory == AOTC_MEMORY_DEVICE    ? "device"
         : memory == AOTC_MEMORY_MANAGED ? "managed"
                                         : "host";
}

static const char *access_text(const aotc_value *value) {
  if (value->rank < 0) {
    return "by value";
  }
  return value->is_read ? (value->is_written ? "read, written" : "read")
                        : (value->is_written ? "written" : "unused");
}

static const char *default_text(const aotc_value *value) {
  const char *source = harness_source_default(value);
  if (source == NULL) {
    return "must be given";
  }
  return strcmp(source, "poison") == 0 ? "left unset" : source;
}

static bool is_dynamic(const aotc_value *value) {
  for (int32_t i = 0; i < value->rank; ++i) {
    if (value->shape[i] == AOTC_DYNAMIC) {
      return true;
    }
  }
  return false;
}

// --- help ---

static void print_help_arguments(FILE *stream, const aotc_entry *entry) {
  harness_table table = {.columns = 4};
  for (int32_t i = 0; i < entry->argument_count; ++i) {
    const aotc_value *value = &entry->arguments[i];
    bool needs_arg = harness_is_option_name(value->name);
    harness_table_add(&table,
                      harness_string(needs_arg ? "--arg %s=SOURCE" : "--%s SOURCE", value->name));
    harness_table_add(&table, harness_string("%s", value->type));
    harness_table_add(&table, harness_string("%s", access_text(value)));
    const char *source = default_text(value);
    bool is_given = harness_source_default(value) == NULL;
    harness_table_add(&table, harness_string("%s%s%s", is_given ? "" : "default: ", source,
                                             is_dynamic(value) ? "; needs --dim or FILE.npy" : ""));
  }
  if (entry->argument_count > 0) {
    fprintf(stream, "\nArguments of %s:\n", entry->name);
    harness_table_print(&table, stream, "  ");
    fputs("SOURCE is FILE.npy, random[:seed=N,low=X,high=X], zeros, ones, arange or a number.\n",
          stream);
  }
  for (int32_t i = 0; i < entry->result_count; ++i) {
    const aotc_value *value = &entry->results[i];
    harness_table_add(&table, harness_string("%s", value->name));
    harness_table_add(&table, harness_string("%s", value->type));
    harness_table_add(&table, harness_string("%s", ""));
    harness_table_add(&table, harness_string("%s", ""));
  }
  if (entry->result_count > 0) {
    fprintf(stream, "\nResults of %s:\n", entry->name);
    harness_table_print(&table, stream, "  ");
  }
}

void harness_print_help(FILE *stream, const harness_options *options) {
  const harness_program *program = &aotc_harness_program;
  if (program->entry_count == 1) {
    fprintf(stream, "Usage: %s [OPTIONS]\n", program->name);
  } else {
    const char *name = options->entry != NULL ? options->entry->name : "ENTRY";
    fprintf(stream, "Usage: %s %s [OPTIONS]\n", program->name, name);
  }
  fprintf(stream, "Calls a function compiled from MLIR, and reports what it wrote and returned.\n");
  if (options->entry != NULL) {
    print_help_arguments(stream, options->entry);
  } else {
    fprintf(stream, "\nEntries (%s ENTRY --help shows the arguments of one):\n", program->name);
    for (int32_t i = 0; i < program->entry_count; ++i) {
      fprintf(stream, "  %s\n", program->entries[i].name);
    }
  }
  fputs("\nOptions:\n", stream);
  harness_options_print(stream);
  fputs("\nAn argument may be given as --NAME SOURCE, --NAME=SOURCE or --arg NAME=SOURCE.\n"
        "Exit codes: 0 ok, 1 mismatch, 2 usage or input, 3 no usable device, 4 device failure.\n",
        stream);
}

void harness_print_version(FILE *stream) {
  fprintf(stream, "%s, made by aotc %s\n", aotc_harness_program.name, aotc_harness_program.version);
}

// --- description ---

static bool is_shown(const harness_options *options, const aotc_entry *entry) {
  return options->entry == NULL || options->entry == entry;
}

static void describe_entry(FILE *stream, const aotc_entry *entry) {
  char shape[HARNESS_SHAPE_TEXT];
  harness_table table = {.columns = 6};
  for (int32_t i = 0; i < harness_target_count(entry); ++i) {
    const aotc_value *value = harness_target(entry, i);
    bool is_argument = i < entry->argument_count, is_scalar = value->rank < 0;
    harness_table_add(&table, harness_string("%s", value->name));
    harness_table_add(&table, harness_string("%s", value->type));
    harness_table_add(
        &table, harness_string("%s %s", harness_facts(value->dtype)->name,
                               is_scalar ? "scalar"
                                         : harness_shape_text(value->rank, value->shape, shape)));
    harness_table_add(&table, harness_string("%s", is_argument ? access_text(value) : "result"));
    harness_table_add(
        &table, harness_string("%s%s", is_argument && !is_scalar ? memory_text(value->memory) : "",
                               is_argument && !is_scalar ? " memory" : ""));
    harness_table_add(&table, is_argument ? harness_string("default: %s", default_text(value))
                                          : harness_string("%s", ""));
  }
  fprintf(stream, "\nentry %s%s\n", entry->name,
          harness_target_count(entry) == 0 ? " (no arguments, no results)" : "");
  harness_table_print(&table, stream, "  ");
}

static void describe_value_json(harness_json *json, const aotc_value *value, bool is_argument) {
  harness_json_open(json, NULL, '{');
  harness_json_string(json, "name", value->name);
  harness_json_string(json, "type", value->type);
  harness_json_string(json, "dtype", harness_facts(value->dtype)->name);
  harness_json_bool(json, "is_scalar", value->rank < 0);
  harness_json_shape(json, "shape", value->rank, value->shape);
  if (value->rank >= 0) {
    if (value->strides != NULL) {
      harness_json_shape(json, "strides", value->rank, value->strides);
    } else {
      harness_json_null(json, "strides");
    }
    if (value->offset == AOTC_DYNAMIC) {
      harness_json_null(json, "offset");
    } else {
      harness_json_integer(json, "offset", value->offset);
    }
  }
  if (is_argument) {
    if (value->rank >= 0) {
      harness_json_bool(json, "is_read", value->is_read);
      harness_json_bool(json, "is_written", value->is_written);
      harness_json_string(json, "memory", memory_text(value->memory));
    }
    harness_json_string(json, "default", harness_source_default(value));
  }
  harness_json_close(json, '}');
}

static void describe_json(FILE *stream, const harness_options *options) {
  const harness_program *program = &aotc_harness_program;
  harness_json json = {.stream = stream};
  harness_json_open(&json, NULL, '{');
  harness_json_string(&json, "program", program->name);
  harness_json_string(&json, "aotc_version", program->version);
  harness_json_open(&json, "entries", '[');
  for (int32_t i = 0; i < program->entry_count; ++i) {
    const aotc_entry *entry = &program->entries[i];
    if (!is_shown(options, entry)) {
      continue;
    }
    harness_json_open(&json, NULL, '{');
    harness_json_string(&json, "name", entry->name);
    harness_json_bool(&json, "touches_memory_on_host", entry->touches_memory_on_host);
    harness_json_open(&json, "arguments", '[');
    for (int32_t j = 0; j < entry->argument_count; ++j) {
      describe_value_json(&json, &entry->arguments[j], true);
    }
    harness_json_close(&json, ']');
    harness_json_open(&json, "results", '[');
    for (int32_t j = 0; j < entry->result_count; ++j) {
      describe_value_json(&json, &entry->results[j], false);
    }
    harness_json_close(&json, ']');
    harness_json_close(&json, '}');
  }
  harness_json_close(&json, ']');
  harness_json_open(&json, "kernels", '[');
  for (int32_t i = 0; i < program->kernel_count; ++i) {
    const harness_kernel *kernel = &program->kernels[i];
    harness_json_open(&json, NULL, '{');
    harness_json_string(&json, "name", kernel->name);
    harness_json_string(&json, "built_for", kernel->built_for);
    harness_json_bool(&json, "has_cpu_form", kernel->has_cpu_form);
    harness_json_string(&json, "why_no_cpu_form",
                        kernel->has_cpu_form ? NULL : kernel->why_no_cpu_form);
    harness_json_close(&json, '}');
  }
  harness_json_close(&json, ']');
  harness_json_close(&json, '}');
}

void harness_print_description(FILE *stream, const harness_options *options) {
  if (options->json) {
    describe_json(stream, options);
    return;
  }
  const harness_program *program = &aotc_harness_program;
  harness_print_version(stream);
  for (int32_t i = 0; i < program->entry_count; ++i) {
    if (is_shown(options, &program->entries[i])) {
      describe_entry(stream, &program->entries[i]);
    }
  }
  fputs(program->kernel_count > 0 ? "\nkernels\n" : "\nno kernels\n", stream);
  harness_table table = {.columns = 3};
  for (int32_t i = 0; i < program->kernel_count; ++i) {
    const harness_kernel *kernel = &program->kernels[i];
    const char *why = kernel->why_no_cpu_form;
    harness_table_add(&table, harness_string("%s", kernel->name));
    harness_table_add(&table,
                      harness_string("built for %s",
                                     kernel->built_for[0] != '\0' ? kernel->built_for : "no GPU"));
    harness_table_add(&table, kernel->has_cpu_form
                                  ? harness_string("runs on the cpu")
                                  : harness_string("not on the cpu%s%s", why != NULL ? ": " : "",
                                                   why != NULL ? why : ""));
  }
  harness_table_print(&table, stream, "  ");
}

// --- devices ---

#define MOST_DEVICES 256

static void print_devices_json(FILE *stream, const aotc_device *devices, int32_t count) {
  harness_json json = {.stream = stream};
  harness_json_open(&json, NULL, '{');
  harness_json_open(&json, "devices", '[');
  for (int32_t i = 0; i < count; ++i) {
    harness_json_device(&json, NULL, &devices[i]);
  }
  harness_json_close(&json, ']');
  harness_json_close(&json, '}');
}

int harness_print_devices(FILE *stream, const harness_options *options) {
  aotc_device *devices = harness_zeroed(MOST_DEVICES, sizeof(aotc_device));
  int32_t count = 0;
  if (aotc_device_list(devices, MOST_DEVICES, &count) != AOTC_OK) {
    harness_error("%s", aotc_error_message());
    free(devices);
    return HARNESS_DEVICE_FAILED;
  }
  count = count < MOST_DEVICES ? count : MOST_DEVICES;
  if (options->json) {
    print_devices_json(stream, devices, count);
    free(devices);
    return HARNESS_OK;
  }
  harness_table table = {.columns = 5};
  for (int32_t i = 0; i < count; ++i) {
    const aotc_device *device = &devices[i];
    bool is_cpu = device->kind == AOTC_DEVICE_CPU;
    char text[32];
    harness_table_add(&table, harness_string("%s", harness_device_text(device, text)));
    harness_table_add(&table, harness_string("%s", is_cpu ? "" : device->name));
    harness_table_add(&table, is_cpu ? harness_string("%s", "")
                                     : harness_string("sm_%d%d", (int)device->capability_major,
                                                      (int)device->capability_minor));
    harness_table_add(&table, harness_string("%d %s", (int)device->multiprocessors,
                                             is_cpu ? "threads" : "multiprocessors"));
    harness_table_add(&table, harness_string("%.1f GiB", (double)device->memory_bytes / 0x1p30));
  }
  harness_table_print(&table, stream, "");
  for (int32_t i = 0; i < count; ++i) {
    if (devices[i].reason[0] != '\0') {
      fprintf(stream, "no GPU: %s\n", devices[i].reason);
    }
  }
  free(devices);
  return HARNESS_OK;
}
