// Checks the results of a driver's calls.
#include "driver.h"

#include <stdarg.h>
#include <stdio.h>

#include "state.h"

bool aotc_rt_keep_failed(aotc_rt_result result) {
  aotc_rt_this_thread.failed = result;
  return false;
}

aotc_rt_result aotc_rt_failed(void) {
  return aotc_rt_this_thread.failed;
}

// Names the kernel that may have caused a failure of earlier work.
static void append_last_launch(char *text, size_t bytes) {
  const aotc_rt_launch_label *launch = &aotc_rt_this_thread.last_launch;
  aotc_rt_append(text, bytes, "; a kernel launched earlier failed while running");
  if (launch->kernel[0] != '\0') {
    aotc_rt_append(text, bytes,
                   "; this thread's last launch was kernel '%s', grid %u x %u x %u, block "
                   "%u x %u x %u",
                   launch->kernel, launch->grid[0], launch->grid[1], launch->grid[2],
                   launch->block[0], launch->block[1], launch->block[2]);
  }
}

static void report(const aotc_rt_driver *driver, aotc_rt_result result, bool is_of_one_kernel,
                   const char *format, va_list values) {
  char failure[AOTC_RT_MESSAGE_BYTES / 4];
  char detail[AOTC_RT_MESSAGE_BYTES / 2];
  if (vsnprintf(detail, sizeof(detail), format, values) < 0) {
    detail[0] = '\0';
  }
  aotc_status status = (aotc_status)result.status;
  if (is_of_one_kernel) {
    status = status == AOTC_DRIVER_FAILED ? AOTC_LAUNCH_FAILED : status;
  } else if (result.meaning == AOTC_RT_OF_EARLIER_WORK) {
    append_last_launch(detail, sizeof(detail));
  }
  driver->describe_failure(result, failure, sizeof(failure));
  aotc_rt_fail(status, "%s: %s", failure, detail);
}

bool aotc_rt_check(const aotc_rt_driver *driver, aotc_rt_result result, const char *format, ...) {
  if (result.code == 0) {
    return true;
  }
  va_list values;
  va_start(values, format);
  report(driver, result, false, format, values);
  va_end(values);
  return false;
}

bool aotc_rt_check_kernel(const aotc_rt_driver *driver, aotc_rt_result result, const char *format,
                          ...) {
  if (result.code == 0) {
    return true;
  }
  va_list values;
  va_start(values, format);
  report(driver, result, true, format, values);
  va_end(values);
  return false;
}

bool aotc_rt_check_release(const aotc_rt_driver *driver, aotc_rt_result result, const char *format,
                           ...) {
  if (result.code == 0) {
    return true;
  }
  if (result.meaning != AOTC_RT_ALREADY_RELEASED) {
    va_list values;
    va_start(values, format);
    report(driver, result, false, format, values);
    va_end(values);
  }
  return false;
}
