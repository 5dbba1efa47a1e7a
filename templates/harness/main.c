// The main of an executable made by aotc: calls an entry of the module with inputs from the command
// line. docs/harness.md is the manual.
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "describe.h"
#include "environment.h"
#include "pipes.h"
#include "plan.h"
#include "rank.h"
#include "report.h"
#include "run.h"

// Makes the plan, calls the entry and prints the report.
static int call_entry(const harness_options *options) {
  if (!options->quiet) {
    harness_note_variables();
  }
  harness_plan plan;
  harness_outcome outcome = {0};
  int code = harness_plan_make(options, &plan);
  if (code == HARNESS_OK) {
    code = harness_run(&plan, &outcome);
    if (code == HARNESS_OK) {
      code = harness_report(stdout, &plan, &outcome);
    }
    harness_outcome_free(&outcome, options->entry);
  }
  harness_plan_free(&plan);
  return code;
}

// Executes the options. No device is used up to --list-devices.
static int act(const harness_options *options) {
  if (options->help) {
    harness_print_help(stdout, options);
    return HARNESS_OK;
  }
  if (options->version) {
    harness_print_version(stdout);
    return HARNESS_OK;
  }
  if (options->describe) {
    harness_print_description(stdout, options);
    return HARNESS_OK;
  }
  if (options->list_devices) {
    return harness_print_devices(stdout, options);
  }
  return call_entry(options);
}

int main(int argc, char **argv) {
  harness_claim_standard_streams();
  harness_options options = {0};
  int code = HARNESS_USAGE;
  if (harness_put_rank(argc, argv) && harness_options_parse(argc, argv, &options)) {
    code = act(&options);
  }
  harness_options_free(&options);
  // A full disk is detected here at the latest.
  if (fflush(stdout) != 0 || ferror(stdout)) {
    harness_error("cannot write to standard output: %s", strerror(errno));
    code = code == HARNESS_OK ? HARNESS_USAGE : code;
  }
  return code;
}
