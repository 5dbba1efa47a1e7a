// Large copies from host memory to a device: upload.c.
#ifndef AOTC_RT_UPLOAD_H
#define AOTC_RT_UPLOAD_H

#include "state.h"

// Enqueues a copy of pageable host memory, which has been read when this returns; the scope's
// context is current. False, with the failure recorded for `what`.
bool aotc_rt_upload(aotc_rt_scope *scope, void *to, const void *from, size_t bytes,
                    aotc_rt_stream stream, const char *what);

// Frees the buffers of a context, which is current and idle. Without a driver they are only
// forgotten.
void aotc_rt_upload_unload(const aotc_rt_driver *driver, aotc_rt_context *context);

#endif // AOTC_RT_UPLOAD_H
