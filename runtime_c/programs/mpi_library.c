// The MPI library that belongs to the launcher of this process, and the failures of its calls.
#include "mpi_library.h"

#include <dlfcn.h>
#include <inttypes.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "aotc_runtime.h"

struct aotc_program_mpi_functions aotc_program_mpi;

// -------------------------------------------------------------------------------------------------
// The library

static pthread_once_t once = PTHREAD_ONCE_INIT;
static bool is_ready;
static char refusal[1024];

static void *open_in(const char *folder) {
  static const char *const places[] = {"../lib", "../lib64", "../lib/x86_64-linux-gnu",
                                       "../lib/aarch64-linux-gnu"};
  for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); ++i) {
    char path[PATH_MAX];
    int length = snprintf(path, sizeof(path), "%s/%s/libmpi_abi.so.1", folder, places[i]);
    if (length > 0 && (size_t)length < sizeof(path) && access(path, R_OK) == 0) {
      void *library = dlopen(path, RTLD_NOW | RTLD_GLOBAL);
      if (library != NULL) {
        return library;
      }
    }
  }
  return NULL;
}

// Looks next to the parent process's executable, which is the launcher's daemon on this machine.
static void *open_beside_parent(void) {
  char link[64];
  char path[PATH_MAX];
  snprintf(link, sizeof(link), "/proc/%d/exe", (int)getppid());
  ssize_t length = readlink(link, path, sizeof(path) - 1);
  if (length <= 0) {
    return NULL;
  }
  path[length] = '\0';
  char *slash = strrchr(path, '/');
  if (slash == NULL) {
    return NULL;
  }
  *slash = '\0';
  return open_in(path);
}

static void *open_beside_mpirun(void) {
  const char *rest = getenv("PATH");
  while (rest != NULL && rest[0] != '\0') {
    size_t length = strcspn(rest, ":");
    char folder[PATH_MAX];
    char file[PATH_MAX];
    snprintf(folder, sizeof(folder), "%.*s", (int)length, rest);
    int written = snprintf(file, sizeof(file), "%s/mpirun", folder);
    if (written > 0 && (size_t)written < sizeof(file) && access(file, X_OK) == 0) {
      return open_in(folder);
    }
    rest += length + (rest[length] == ':' ? 1 : 0);
  }
  return NULL;
}

static void *open_library(void) {
  const char *named = getenv("AOTC_MPI");
  if (named != NULL && named[0] != '\0') {
    void *library = dlopen(named, RTLD_NOW | RTLD_GLOBAL);
    if (library == NULL) {
      snprintf(refusal, sizeof(refusal), "AOTC_MPI names no library: %s", dlerror());
    }
    return library;
  }
  void *library = open_beside_parent();
  if (library == NULL) {
    library = open_beside_mpirun();
  }
  if (library == NULL) {
    library = dlopen("libmpi_abi.so.1", RTLD_NOW | RTLD_GLOBAL);
  }
  if (library == NULL) {
    snprintf(refusal, sizeof(refusal),
             "there is no MPI library with the standard ABI of MPI 5.0 (libmpi_abi.so.1): %s; "
             "install one ('pip install mpich' has it) and start the program by its mpirun, or "
             "name the file by AOTC_MPI",
             dlerror());
  }
  return library;
}

static bool load(void *library) {
#define LOAD(name, parameters)                                                                     \
  *(void **)&aotc_program_mpi.name = dlsym(library, "MPI_" #name);                                 \
  if (aotc_program_mpi.name == NULL) {                                                             \
    snprintf(refusal, sizeof(refusal), "the MPI library has no MPI_" #name);                       \
    return false;                                                                                  \
  }
  FUNCTIONS(LOAD)
  return true;
}

// Called when the program ends. After a failure it is left to the launcher to end the other
// processes.
static void finalize(void) {
  int is_finalized = 0;
  if (!aotc_is_stopped() && aotc_program_mpi.Finalized(&is_finalized) == 0 && is_finalized == 0) {
    aotc_program_mpi.Finalize();
  }
}

static void start(void) {
  void *library = open_library();
  if (library == NULL || !load(library)) {
    return;
  }
  int is_initialized = 0;
  aotc_program_mpi.Initialized(&is_initialized);
  if (is_initialized == 0) {
    int status = aotc_program_mpi.Init(NULL, NULL);
    if (status != 0) {
      snprintf(refusal, sizeof(refusal), "MPI_Init failed with status %d", status);
      return;
    }
    atexit(finalize);
  }
  // Calls return errors instead of aborting. Communicators derived from this one inherit that.
  aotc_program_mpi.Comm_set_errhandler(handle_of(WORLD), handle_of(ERRORS_RETURN));
  is_ready = true;
}

bool aotc_program_mpi_begin(const char *call) {
  if (aotc_is_stopped()) {
    return false;
  }
  pthread_once(&once, start);
  if (!is_ready) {
    char message[sizeof(refusal) + 64];
    snprintf(message, sizeof(message), "%s: %s", call, refusal);
    aotc_error_adopt(AOTC_UNSUPPORTED, message);
  }
  return is_ready;
}

void aotc_program_mpi_fail(const char *call, const char *what) {
  int rank = 0;
  aotc_program_mpi.Comm_rank(handle_of(WORLD), &rank);
  char message[ERROR_CHARACTERS + 128];
  snprintf(message, sizeof(message), "%s on rank %d: %s", call, rank, what);
  aotc_error_adopt(AOTC_INVALID_ARGUMENT, message);
}

int32_t aotc_program_mpi_end(const char *call, int status, bool is_checked) {
  if (status != 0 && is_checked) {
    char words[ERROR_CHARACTERS] = "";
    int length = 0;
    aotc_program_mpi.Error_string(status, words, &length);
    aotc_program_mpi_fail(call, words);
  }
  return status;
}
