// Prints arrays as NumPy does: with brackets and columns, and large ones abbreviated.
#ifndef AOTC_HARNESS_PRINT_H
#define AOTC_HARNESS_PRINT_H

#include <stdio.h>

#include "array.h"

// Prints "NAME = " and the array, with up to 8 digits per number. If it has more than 1000
// elements, only the first and last three of each dimension are printed.
void harness_print(FILE *stream, const char *name, const harness_array *array);

#endif
