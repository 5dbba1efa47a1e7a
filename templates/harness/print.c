#include "print.h"

#include <string.h>

// numpy.set_printoptions' defaults: precision, threshold, edgeitems, linewidth.
#define DIGITS 8
#define THRESHOLD 1000
#define EDGE_ITEMS 3
#define LINE_WIDTH 75

typedef struct printer {
  FILE *stream;
  const harness_array *array;
  uint64_t steps[HARNESS_MAX_RANK]; // elements from one index of a dimension to the next
  bool is_summary;
  int width;  // of the widest element; 0 while it is being found
  int indent; // columns before the outermost bracket
} printer;

static void print_line(printer *self, int32_t dimension, uint64_t first) {
  int64_t size = self->array->shape[dimension];
  bool has_dots = self->is_summary && size > 2 * EDGE_ITEMS;
  int start = self->indent + dimension + 1, column = start;
  for (int64_t i = 0; i < size; ++i) {
    bool is_dots = has_dots && i == EDGE_ITEMS;
    char text[HARNESS_NUMBER_TEXT] = "...";
    int width = 3;
    if (!is_dots) {
      harness_element_text(self->array->dtype, self->array->data, first + (uint64_t)i, DIGITS,
                           text);
      width = self->width;
    }
    if (i > 0 && column + 1 + width >= LINE_WIDTH) {
      fprintf(self->stream, "\n%*s", start, "");
      column = start;
    } else if (i > 0) {
      fputc(' ', self->stream);
      ++column;
    }
    fprintf(self->stream, "%*s", width, text);
    column += width;
    if (is_dots) {
      i = size - EDGE_ITEMS - 1;
    }
  }
}

static void print_dimension(printer *self, int32_t dimension, uint64_t first) {
  const harness_array *array = self->array;
  fputc('[', self->stream);
  if (dimension == array->rank - 1) {
    print_line(self, dimension, first);
  } else {
    int64_t size = array->shape[dimension];
    bool has_dots = self->is_summary && size > 2 * EDGE_ITEMS;
    for (int64_t i = 0; i < size; ++i) {
      if (i > 0) {
        // An empty line between matrices, as in NumPy.
        for (int32_t d = dimension; d < array->rank - 1; ++d) {
          fputc('\n', self->stream);
        }
        fprintf(self->stream, "%*s", self->indent + dimension + 1, "");
      }
      if (has_dots && i == EDGE_ITEMS) {
        fputs("...", self->stream);
        i = size - EDGE_ITEMS - 1;
      } else {
        print_dimension(self, dimension + 1, first + (uint64_t)i * self->steps[dimension]);
      }
    }
  }
  fputc(']', self->stream);
}

// The width of the widest element that is printed.
static int widest(printer *self, int32_t dimension, uint64_t first) {
  const harness_array *array = self->array;
  if (dimension == array->rank) {
    char text[HARNESS_NUMBER_TEXT];
    return (int)strlen(harness_element_text(array->dtype, array->data, first, DIGITS, text));
  }
  int64_t size = array->shape[dimension];
  bool has_dots = self->is_summary && size > 2 * EDGE_ITEMS;
  int most = 0;
  for (int64_t i = 0; i < size; ++i) {
    if (has_dots && i == EDGE_ITEMS) {
      i = size - EDGE_ITEMS;
    }
    int width = widest(self, dimension + 1, first + (uint64_t)i * self->steps[dimension]);
    most = width > most ? width : most;
  }
  return most;
}

void harness_print(FILE *stream, const char *name, const harness_array *array) {
  char shape[HARNESS_SHAPE_TEXT];
  int indent = fprintf(stream, "%s = ", name);
  printer self = {.stream = stream, .array = array, .indent = indent < 0 ? 0 : indent};
  self.is_summary = array->count > THRESHOLD;
  uint64_t step = 1;
  for (int32_t i = array->rank - 1; i >= 0; --i) {
    self.steps[i] = step;
    step *= (uint64_t)array->shape[i];
  }
  if (array->count == 0) {
    fprintf(stream, "[] of shape %s", harness_shape_text(array->rank, array->shape, shape));
  } else if (array->rank == 0) {
    char text[HARNESS_NUMBER_TEXT];
    fputs(harness_element_text(array->dtype, array->data, 0, DIGITS, text), stream);
  } else {
    self.width = widest(&self, 0, 0);
    print_dimension(&self, 0, 0);
  }
  fputc('\n', stream);
}
