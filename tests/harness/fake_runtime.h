// What the fake runtime adds to aotc_runtime.h, for entries that fail.
#ifndef FAKE_RUNTIME_H
#define FAKE_RUNTIME_H

#include "aotc_runtime.h"

// Records a failure, as a launch inside an entry does.
void fake_runtime_fail(aotc_status status, const char *message);

#endif
