// The report of a program after its calls: results, comparisons, times; as text or JSON.
#ifndef AOTC_HARNESS_REPORT_H
#define AOTC_HARNESS_REPORT_H

#include <stdio.h>

#include "run.h"

// Writes the files of --out, compares with --expect, prints the report. Returns the exit code.
int harness_report(FILE *stream, const harness_plan *plan, harness_outcome *outcome);

#endif
