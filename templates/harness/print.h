// Arrays as people read them: NumPy's brackets and columns, and its dots in large ones.
#ifndef AOTC_HARNESS_PRINT_H
#define AOTC_HARNESS_PRINT_H

#include <stdio.h>

#include "array.h"

// Prints "NAME = " and the array, up to 8 digits a number; more than 1000 elements are summarized
// to the first and last three of each dimension.
void harness_print(FILE *stream, const char *name, const harness_array *array);

#endif
