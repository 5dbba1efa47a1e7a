#include "options.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "text.h"

// More calls would take an hour or more, and are considered a typing error.
#define MOST_CALLS 1000000

typedef enum option_id {
  OPTION_ARG,
  OPTION_DIM,
  OPTION_OUT,
  OPTION_PRINT,
  OPTION_EXPECT,
  OPTION_RTOL,
  OPTION_ATOL,
  OPTION_SEED,
  OPTION_REPEAT,
  OPTION_WARMUP,
  OPTION_DEVICE,
  OPTION_JSON,
  OPTION_DESCRIBE,
  OPTION_LIST_DEVICES,
  OPTION_QUIET,
  OPTION_HELP,
  OPTION_VERSION,
} option_id;

typedef struct option {
  option_id id;
  const char *name;
  char letter;       // 0: none
  const char *value; // the placeholder for its value in --help; NULL: it has none
  const char *help;
} option;

// clang-format off
static const option options_table[] = {
    {OPTION_ARG,          "arg",          0,   "NAME=SOURCE",   "an argument, also one whose name is an option's"},
    {OPTION_DIM,          "dim",          0,   "NAME=128x64",   "the shape of an argument with dynamic dimensions"},
    {OPTION_OUT,          "out",          0,   "NAME=FILE.npy", "write what is in NAME after the call"},
    {OPTION_PRINT,        "print",        0,   "NAME",          "print it, long arrays summarized"},
    {OPTION_EXPECT,       "expect",       0,   "NAME=FILE.npy", "compare it; exit 1 when it differs"},
    {OPTION_RTOL,         "rtol",         0,   "X",             "allow |got - expected| <= atol + rtol * |expected|"},
    {OPTION_ATOL,         "atol",         0,   "X",             "(defaults by type: 1e-5 and 1e-7 for f32)"},
    {OPTION_SEED,         "seed",         0,   "N",             "the seed of random arguments (default 0)"},
    {OPTION_REPEAT,       "repeat",       0,   "N",             "after the first call, time N more"},
    {OPTION_WARMUP,       "warmup",       0,   "N",             "calls between the first and the timed ones"},
    {OPTION_DEVICE,       "device",       0,   "DEVICE",        "auto, cuda, cuda:N or cpu (default: AOTC_DEVICE, else auto)"},
    {OPTION_JSON,         "json",         0,   NULL,            "report as one JSON object on stdout"},
    {OPTION_DESCRIBE,     "describe",     0,   NULL,            "show entries, arguments and kernels, and stop"},
    {OPTION_LIST_DEVICES, "list-devices", 0,   NULL,            "show the devices of this machine, and stop"},
    {OPTION_QUIET,        "quiet",        'q', NULL,            "no notes on stderr"},
    {OPTION_HELP,         "help",         'h', NULL,            "show this, and stop"},
    {OPTION_VERSION,      "version",      0,   NULL,            "show the version of aotc that made this, and stop"},
};
// clang-format on
#define OPTION_COUNT (sizeof(options_table) / sizeof(options_table[0]))

int32_t harness_target_count(const aotc_entry *entry) {
  return entry->argument_count + entry->result_count;
}

const aotc_value *harness_target(const aotc_entry *entry, int32_t target) {
  return target < entry->argument_count ? &entry->arguments[target]
                                        : &entry->results[target - entry->argument_count];
}

static const option *find_option(const char *name, size_t length) {
  for (size_t i = 0; i < OPTION_COUNT; ++i) {
    if (strlen(options_table[i].name) == length &&
        memcmp(options_table[i].name, name, length) == 0) {
      return &options_table[i];
    }
  }
  return NULL;
}

bool harness_is_option_name(const char *name) {
  return find_option(name, strlen(name)) != NULL;
}

void harness_options_print(FILE *stream) {
  for (size_t i = 0; i < OPTION_COUNT; ++i) {
    const option *row = &options_table[i];
    char *letter = row->letter != 0 ? harness_string("-%c, ", row->letter) : harness_string("    ");
    char *text = harness_string("%s--%s%s%s", letter, row->name, row->value != NULL ? " " : "",
                                row->value != NULL ? row->value : "");
    fprintf(stream, "  %-28s %s\n", text, row->help);
    free(letter);
    free(text);
  }
}

// One word of the command line: --NAME, --NAME=VALUE, -L, or neither.
typedef struct token {
  const option *option; // NULL: not one that every program has
  const char *name;     // after the dashes; NULL: not an option at all
  size_t name_length;
  const char *value; // after '=', else NULL
} token;

static token read_token(const char *word) {
  token result = {0};
  if (word[0] != '-' || word[1] == '\0') {
    return result;
  }
  if (word[1] != '-') {
    result.name = word + 1;
    result.name_length = strlen(result.name);
    for (size_t i = 0; i < OPTION_COUNT; ++i) {
      if (options_table[i].letter != 0 && options_table[i].letter == word[1] && word[2] == '\0') {
        result.option = &options_table[i];
      }
    }
    return result;
  }
  result.name = word + 2;
  result.name_length = strcspn(result.name, "=");
  if (result.name[result.name_length] == '=') {
    result.value = result.name + result.name_length + 1;
  }
  result.option = find_option(result.name, result.name_length);
  return result;
}

// Whether the option's value is the next word. A name that is not an option of every program is
// that of an argument, which takes a source.
static bool wants_next_word(const token *word) {
  if (word->name == NULL || word->value != NULL) {
    return false;
  }
  return word->option == NULL || word->option->value != NULL;
}

// Whether a word can be a value: no source, file or number begins with two dashes.
static bool is_value(const char *word) {
  return word != NULL && strncmp(word, "--", 2) != 0;
}

// --- the entry ---

static char *entry_names(void) {
  char *names = harness_string("%s", "");
  for (int32_t i = 0; i < aotc_harness_program.entry_count; ++i) {
    char *longer =
        harness_string("%s%s%s", names, i > 0 ? ", " : "", aotc_harness_program.entries[i].name);
    free(names);
    names = longer;
  }
  return names;
}

// The first word that is neither an option nor an option's value names the entry.
static bool choose_entry(int argc, char **argv, harness_options *options) {
  const harness_program *program = &aotc_harness_program;
  const char *name = NULL;
  for (int i = 1; i < argc; ++i) {
    token word = read_token(argv[i]);
    if (word.option != NULL && word.option->value == NULL) {
      options->help |= word.option->id == OPTION_HELP;
      options->version |= word.option->id == OPTION_VERSION;
      options->describe |= word.option->id == OPTION_DESCRIBE;
      options->list_devices |= word.option->id == OPTION_LIST_DEVICES;
    } else if (wants_next_word(&word)) {
      i += is_value(argv[i + 1]); // argv ends with NULL
    } else if (word.name == NULL && name == NULL) {
      name = argv[i];
    }
  }
  if (name == NULL) {
    options->entry = program->entry_count == 1 ? &program->entries[0] : NULL;
    return true;
  }
  harness_suggestion suggestion = harness_suggest(name);
  for (int32_t i = 0; i < program->entry_count; ++i) {
    harness_suggest_try(&suggestion, program->entries[i].name);
    if (strcmp(program->entries[i].name, name) == 0) {
      options->entry = &program->entries[i];
      options->has_entry_name = true;
      return true;
    }
  }
  char *names = entry_names();
  const char *nearest = harness_suggest_result(&suggestion);
  if (nearest != NULL) {
    harness_error("no entry '%s', did you mean '%s'? This program has: %s", name, nearest, names);
  } else {
    harness_error("no entry '%s'. This program has: %s", name, names);
  }
  free(names);
  return false;
}

// --- values ---

// Finds "NAME=REST" among the first `count` targets; names may contain '='. -1 if there is none.
static int32_t find_target(const aotc_entry *entry, int32_t count, const char *text, bool has_rest,
                           const char **out_rest) {
  for (int32_t i = 0; i < count; ++i) {
    const char *name = harness_target(entry, i)->name;
    size_t length = strlen(name);
    if (strncmp(text, name, length) == 0 && text[length] == (has_rest ? '=' : '\0')) {
      *out_rest = text + length + has_rest;
      return i;
    }
  }
  return -1;
}

static bool unknown_target(const aotc_entry *entry, int32_t count, const option *option,
                           const char *text) {
  size_t length = strcspn(text, "=");
  if (option->id != OPTION_PRINT && text[length] == '\0') {
    harness_error("--%s takes %s, not '%s'", option->name, option->value, text);
    return false;
  }
  char *names = harness_string("%s", "");
  for (int32_t i = 0; i < count; ++i) {
    char *longer =
        harness_string("%s%s%s", names, i > 0 ? ", " : "", harness_target(entry, i)->name);
    free(names);
    names = longer;
  }
  harness_error("--%s: no '%.*s' in entry '%s'. It has: %s", option->name, (int)length, text,
                entry->name, names);
  free(names);
  return false;
}

// Stores a text for a target, once.
static bool set_once(const char **slot, const char *option_name, const char *name,
                     const char *text) {
  if (*slot != NULL) {
    harness_error("--%s gives '%s' twice: '%s' and '%s'", option_name, name, *slot, text);
    return false;
  }
  *slot = text;
  return true;
}

static bool set_for_target(harness_options *options, const option *option, const char *text) {
  const aotc_entry *entry = options->entry;
  bool is_input = option->id == OPTION_ARG || option->id == OPTION_DIM;
  int32_t count = is_input ? entry->argument_count : harness_target_count(entry);
  const char *rest;
  int32_t target = find_target(entry, count, text, option->id != OPTION_PRINT, &rest);
  if (target < 0) {
    return unknown_target(entry, count, option, text);
  }
  const char *name = harness_target(entry, target)->name;
  switch (option->id) {
  case OPTION_ARG:
    return set_once(&options->sources[target], option->name, name, rest);
  case OPTION_DIM:
    return set_once(&options->dimensions[target], option->name, name, rest);
  case OPTION_OUT:
    return set_once(&options->outs[target], option->name, name, rest);
  case OPTION_EXPECT:
    return set_once(&options->expects[target], option->name, name, rest);
  default:
    options->prints[target] = true;
    return true;
  }
}

static bool set_tolerance(const option *option, const char *text, double *out_value,
                          bool *out_has) {
  *out_has = harness_parse_real(text, out_value) && isfinite(*out_value) && *out_value >= 0;
  if (!*out_has) {
    harness_error("--%s must be a number of 0 or more, not '%s'", option->name, text);
  }
  return *out_has;
}

static bool set_count(const option *option, const char *text, uint64_t most, uint64_t *out_value) {
  if (!harness_parse_unsigned(text, out_value) || *out_value > most) {
    harness_error("--%s must be an integer from 0 to %llu, not '%s'", option->name,
                  (unsigned long long)most, text);
    return false;
  }
  return true;
}

static bool set_device(harness_options *options, const char *text) {
  uint64_t number;
  bool has_number = strncmp(text, "cuda:", strlen("cuda:")) == 0;
  if (strcmp(text, "auto") != 0 && strcmp(text, "cuda") != 0 && strcmp(text, "cpu") != 0 &&
      !(has_number && harness_parse_unsigned(text + strlen("cuda:"), &number) &&
        number <= INT32_MAX)) {
    harness_error("--device must be auto, cuda, cuda:N or cpu, not '%s'", text);
    return false;
  }
  options->device = text;
  return true;
}

static bool set_option(harness_options *options, const option *option, const char *text) {
  switch (option->id) {
  case OPTION_ARG:
  case OPTION_DIM:
  case OPTION_OUT:
  case OPTION_PRINT:
  case OPTION_EXPECT:
    return set_for_target(options, option, text);
  case OPTION_RTOL:
    return set_tolerance(option, text, &options->rtol, &options->has_rtol);
  case OPTION_ATOL:
    return set_tolerance(option, text, &options->atol, &options->has_atol);
  case OPTION_SEED:
    return set_count(option, text, UINT64_MAX, &options->seed);
  case OPTION_REPEAT:
    return set_count(option, text, MOST_CALLS, &options->repeat);
  case OPTION_WARMUP:
    return set_count(option, text, MOST_CALLS, &options->warmup);
  case OPTION_DEVICE:
    return set_device(options, text);
  case OPTION_JSON:
    options->json = true;
    return true;
  case OPTION_QUIET:
    options->quiet = true;
    return true;
  case OPTION_DESCRIBE:
  case OPTION_LIST_DEVICES:
  case OPTION_HELP:
  case OPTION_VERSION:
    return true; // stored when the entry was selected
  }
  return true;
}

static bool unknown_option(const harness_options *options, const char *word, const token *read) {
  char *name = harness_string("%.*s", (int)read->name_length, read->name);
  harness_suggestion suggestion = harness_suggest(name);
  for (size_t i = 0; i < OPTION_COUNT; ++i) {
    harness_suggest_try(&suggestion, options_table[i].name);
  }
  // Without an entry, the option may belong to any of them.
  const harness_program *program = &aotc_harness_program;
  const aotc_entry *entries = options->entry != NULL ? options->entry : program->entries;
  int32_t entry_count = options->entry != NULL ? 1 : program->entry_count;
  for (int32_t e = 0; e < entry_count; ++e) {
    for (int32_t i = 0; i < entries[e].argument_count; ++i) {
      harness_suggest_try(&suggestion, entries[e].arguments[i].name);
    }
  }
  const char *nearest = harness_suggest_result(&suggestion);
  int length = (int)(read->name_length + (size_t)(read->name - word));
  if (nearest != NULL) {
    harness_error("unknown option '%.*s', did you mean '--%s'?", length, word, nearest);
  } else {
    harness_error("unknown option '%.*s'; --help lists them", length, word);
  }
  free(name);
  return false;
}

// The argument whose source --NAME is; -1 if there is none.
static int32_t find_argument(const aotc_entry *entry, const token *word) {
  for (int32_t i = 0; entry != NULL && i < entry->argument_count; ++i) {
    const char *name = entry->arguments[i].name;
    if (strlen(name) == word->name_length && memcmp(name, word->name, word->name_length) == 0) {
      return i;
    }
  }
  return -1;
}

static bool is_argument_of_any_entry(const token *word) {
  for (int32_t e = 0; e < aotc_harness_program.entry_count; ++e) {
    if (find_argument(&aotc_harness_program.entries[e], word) >= 0) {
      return true;
    }
  }
  return false;
}

// Reports that no entry was named. The cause may be an unknown option, whose value was meant as
// such.
static void missing_entry(int argc, char **argv, const harness_options *options) {
  for (int i = 1; i < argc; ++i) {
    token word = read_token(argv[i]);
    bool is_long = argv[i][0] == '-' && argv[i][1] == '-';
    if (word.name != NULL && word.option == NULL && !(is_long && is_argument_of_any_entry(&word))) {
      unknown_option(options, argv[i], &word);
      return;
    }
    i += wants_next_word(&word) && is_value(argv[i + 1]); // argv ends with NULL
  }
  char *names = entry_names();
  harness_error("say which entry to call: %s", names);
  free(names);
}

static bool parse_words(int argc, char **argv, harness_options *options) {
  bool has_seen_entry = !options->has_entry_name;
  for (int i = 1; i < argc; ++i) {
    token word = read_token(argv[i]);
    if (word.name == NULL) {
      if (has_seen_entry) {
        harness_error("unexpected word '%s'; arguments are given by name, as --NAME SOURCE",
                      argv[i]);
        return false;
      }
      has_seen_entry = true;
      continue;
    }
    bool is_long = argv[i][1] == '-';
    int32_t argument = word.option == NULL && is_long ? find_argument(options->entry, &word) : -1;
    if (word.option == NULL && argument < 0) {
      return unknown_option(options, argv[i], &word);
    }
    const char *text = word.value;
    if (wants_next_word(&word)) {
      if (!is_value(argv[i + 1])) {
        harness_error("%s needs a value: %s", argv[i],
                      word.option != NULL ? word.option->value : "SOURCE");
        return false;
      }
      text = argv[++i];
    } else if (word.option != NULL && word.option->value == NULL && text != NULL) {
      harness_error("--%s takes no value, not '%s'", word.option->name, text);
      return false;
    }
    bool is_good = argument >= 0 ? set_once(&options->sources[argument], "arg",
                                            options->entry->arguments[argument].name, text)
                                 : set_option(options, word.option, text);
    if (!is_good) {
      return false;
    }
  }
  return true;
}

bool harness_options_parse(int argc, char **argv, harness_options *out_options) {
  *out_options = (harness_options){0};
  if (!choose_entry(argc, argv, out_options)) {
    return false;
  }
  if (out_options->help || out_options->version) {
    return true; // regardless of other options, which may be wrong
  }
  bool needs_entry = !out_options->describe && !out_options->list_devices;
  if (out_options->entry == NULL && needs_entry) {
    missing_entry(argc, argv, out_options);
    return false;
  }
  // Without an entry, options with argument names match nothing.
  static const aotc_entry no_entry = {.name = ""};
  const aotc_entry *entry = out_options->entry != NULL ? out_options->entry : &no_entry;
  size_t arguments = (size_t)entry->argument_count;
  size_t targets = (size_t)harness_target_count(entry);
  out_options->sources = harness_zeroed(arguments, sizeof(char *));
  out_options->dimensions = harness_zeroed(arguments, sizeof(char *));
  out_options->outs = harness_zeroed(targets, sizeof(char *));
  out_options->expects = harness_zeroed(targets, sizeof(char *));
  out_options->prints = harness_zeroed(targets, sizeof(bool));
  bool has_entry = out_options->entry != NULL;
  out_options->entry = entry;
  bool is_good = parse_words(argc, argv, out_options);
  out_options->entry = has_entry ? entry : NULL;
  return is_good;
}

void harness_options_free(harness_options *options) {
  free(options->sources);
  free(options->dimensions);
  free(options->outs);
  free(options->expects);
  free(options->prints);
  *options = (harness_options){0};
}
