// The threads that run tasks. They are created on demand and live until the process ends or the
// library is unloaded. A thread that blocks inside a task does not count towards the limit: another
// one replaces it, so tasks that wait for each other cannot deadlock for lack of threads.
#include "async_tasks.h"
#include "utility.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

// A task that waits for a GPU occupies a thread.
#define LEAST_THREADS 4
#define MOST_THREADS 4096
#define STACK_BYTES ((size_t)8 << 20)

struct aotc_program_failure {
  int64_t owners;
  aotc_status status;
  char message[];
};

typedef struct tasks {
  pthread_mutex_t lock;
  pthread_cond_t has_work;
  pthread_cond_t has_news; // an object became available, or no task is left
  aotc_program_task *first, **end;
  int32_t queued;
  pthread_t *threads; // room for MOST_THREADS, the first thread_count of which are running
  int32_t thread_count;
  int32_t idle;    // threads without a task
  int32_t blocked; // threads blocked inside a task
  int32_t limit;   // maximum number of threads with a task that is not blocked
  pid_t process;   // the process that created the threads
  bool is_stopping;
  aotc_program_failure *first_failure; // of any task
} tasks;

static tasks the_tasks = {
    .lock = PTHREAD_MUTEX_INITIALIZER,
    .has_work = PTHREAD_COND_INITIALIZER,
    .has_news = PTHREAD_COND_INITIALIZER,
    .end = &the_tasks.first,
};

static _Thread_local bool is_worker;
static _Thread_local bool is_in_task;
// Whether the failure of the thread's task has been recorded; it may have been cleared since.
static _Thread_local bool has_noted;
static _Thread_local bool has_waited; // for an object in error, without asking about it since

// -------------------------------------------------------------------------------------------------
// Failures

// Used when there is no memory for another failure.
static aotc_program_failure the_out_of_memory = {
    .owners = 1,
    .status = AOTC_OUT_OF_MEMORY,
};

aotc_program_failure *aotc_program_failure_take(void) {
  if (!aotc_is_stopped()) {
    return NULL;
  }
  const char *message = aotc_error_message();
  size_t bytes = strlen(message) + 1;
  aotc_program_failure *failure = malloc(sizeof(*failure) + bytes);
  if (failure == NULL) {
    return &the_out_of_memory;
  }
  failure->owners = 1;
  failure->status = aotc_status_get();
  memcpy(failure->message, message, bytes);
  return failure;
}

aotc_program_failure *aotc_program_failure_share_locked(aotc_program_failure *failure) {
  if (failure != NULL && failure != &the_out_of_memory) {
    ++failure->owners;
  }
  return failure;
}

void aotc_program_failure_drop_locked(aotc_program_failure *failure) {
  if (failure != NULL && failure != &the_out_of_memory && --failure->owners == 0) {
    free(failure);
  }
}

void aotc_program_failure_note_locked(aotc_program_failure *failure) {
  if (failure == NULL || !is_in_task) {
    return;
  }
  has_noted = true;
  if (the_tasks.first_failure == NULL) {
    the_tasks.first_failure = aotc_program_failure_share_locked(failure);
  }
}

void aotc_program_failure_forget_locked(const aotc_program_failure *failure) {
  aotc_program_failure *noted = the_tasks.first_failure;
  // A failure that was passed on to this task is a copy of a known one.
  bool is_known =
      noted != NULL && failure != NULL && noted->status == failure->status &&
      (noted == failure || (noted != &the_out_of_memory && failure != &the_out_of_memory &&
                            strcmp(noted->message, failure->message) == 0));
  if (is_known) {
    the_tasks.first_failure = NULL;
    aotc_program_failure_drop_locked(noted);
  }
}

bool aotc_program_failure_was_awaited(const aotc_program_failure *failure) {
  // The thread's message may be prefixed with the entry's name.
  bool was =
      has_waited && failure != NULL && failure->status == aotc_status_get() &&
      (failure == &the_out_of_memory || strstr(aotc_error_message(), failure->message) != NULL);
  has_waited = has_waited && !was;
  return was;
}

void aotc_program_failure_adopt(aotc_program_failure *failure) {
  if (failure == NULL) {
    return;
  }
  bool has_text = failure != &the_out_of_memory;
  aotc_error_adopt(failure->status,
                   has_text ? failure->message : "a task failed; no host memory for its message");
  aotc_program_tasks_lock();
  aotc_program_failure_drop_locked(failure);
  aotc_program_tasks_unlock();
}

void aotc_program_failure_adopt_awaited(aotc_program_failure *failure) {
  has_waited = has_waited || failure != NULL;
  aotc_program_failure_adopt(failure);
}

// -------------------------------------------------------------------------------------------------
// Threads

static int32_t choose_limit(void) {
  const char *text = getenv("AOTC_CPU_THREADS");
  if (text != NULL && text[0] != '\0') {
    char *end = NULL;
    errno = 0;
    long wanted = strtol(text, &end, 10);
    if (errno == 0 && *end == '\0' && text[0] >= '0' && text[0] <= '9' && wanted >= 1) {
      return wanted < MOST_THREADS ? (int32_t)wanted : MOST_THREADS;
    }
    char message[160];
    snprintf(message, sizeof(message), "AOTC_CPU_THREADS is '%.80s'; expected a number from 1",
             text);
    aotc_error_adopt(AOTC_INVALID_ARGUMENT, message);
  }
  cpu_set_t set;
  int count = sched_getaffinity(0, sizeof(set), &set) == 0 ? CPU_COUNT(&set) : 1;
  return count > LEAST_THREADS ? count : LEAST_THREADS;
}

// After a fork, the child has neither the threads nor their tasks.
static void begin_locked(tasks *t) {
  pid_t process = getpid();
  if (t->process == process) {
    return;
  }
  if (t->process != 0) {
    // The parent's waiting threads do not exist here.
    pthread_cond_init(&t->has_work, NULL);
    pthread_cond_init(&t->has_news, NULL);
  }
  t->process = process;
  t->limit = choose_limit();
  t->first = NULL;
  t->end = &t->first;
  t->queued = t->thread_count = t->idle = t->blocked = 0;
}

static aotc_program_task *pop_locked(tasks *t) {
  aotc_program_task *task = t->first;
  --t->queued;
  t->first = task->next;
  if (t->first == NULL) {
    t->end = &t->first;
  }
  return task;
}

// Runs a task on a thread without a recorded failure.
static void run(aotc_program_task *task) {
  const bool was_in_task = is_in_task, had_noted = has_noted, had_waited = has_waited;
  is_in_task = true;
  has_noted = has_waited = false;
  aotc_program_failure_adopt(task->failure);
  aotc_default_device_adopt(task->device);
  task->resume(task->coroutine);
  free(task);
  aotc_program_failure *failure = has_noted ? NULL : aotc_program_failure_take();
  aotc_program_tasks_lock();
  aotc_program_failure_note_locked(failure);
  aotc_program_failure_drop_locked(failure);
  aotc_program_tasks_unlock();
  aotc_error_clear();
  is_in_task = was_in_task, has_noted = had_noted, has_waited = had_waited;
}

static void *worker(void *argument) {
  tasks *t = argument;
  is_worker = true;
  pthread_mutex_lock(&t->lock);
  for (;;) {
    if (t->first == NULL && t->is_stopping) {
      break;
    }
    if (t->first == NULL) {
      ++t->idle;
      pthread_cond_broadcast(&t->has_news);
      pthread_cond_wait(&t->has_work, &t->lock);
      --t->idle;
      continue;
    }
    aotc_program_task *task = pop_locked(t);
    pthread_mutex_unlock(&t->lock);
    run(task);
    pthread_mutex_lock(&t->lock);
  }
  pthread_mutex_unlock(&t->lock);
  return NULL;
}

static void start_thread_locked(tasks *t) {
  if (t->threads == NULL) {
    t->threads = calloc(MOST_THREADS, sizeof(*t->threads));
  }
  pthread_attr_t attributes;
  if (t->threads == NULL || t->thread_count == MOST_THREADS ||
      pthread_attr_init(&attributes) != 0) {
    return;
  }
  // Signals are handled on the program's own threads.
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  if (pthread_attr_setstacksize(&attributes, STACK_BYTES) == 0 &&
      pthread_sigmask(SIG_SETMASK, &all, &before) == 0) {
    pthread_t *thread = &t->threads[t->thread_count];
    t->thread_count += pthread_create(thread, &attributes, worker, t) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
  }
  pthread_attr_destroy(&attributes);
}

// Starts a thread if more tasks are queued than threads are idle, and the limit allows one more.
static void staff_locked(tasks *t) {
  if (t->queued > t->idle && t->thread_count - t->blocked < t->limit && !t->is_stopping) {
    start_thread_locked(t);
  }
}

// -------------------------------------------------------------------------------------------------
// Tasks

void aotc_program_tasks_lock(void) {
  pthread_mutex_lock(&the_tasks.lock);
}

void aotc_program_tasks_unlock(void) {
  pthread_mutex_unlock(&the_tasks.lock);
}

// Runs queued tasks on the waiting thread when no thread can be created.
static void run_here_locked(tasks *t) {
  aotc_program_task *task = pop_locked(t);
  pthread_mutex_unlock(&t->lock);
  aotc_program_failure *own = aotc_program_failure_take();
  int32_t device = aotc_default_device_get();
  aotc_error_clear();
  run(task);
  aotc_default_device_adopt(device);
  aotc_program_failure_adopt(own);
  pthread_mutex_lock(&t->lock);
}

void aotc_program_tasks_wait_locked(void) {
  tasks *t = &the_tasks;
  t->blocked += is_worker;
  staff_locked(t);
  if (t->thread_count == 0 && t->first != NULL) {
    run_here_locked(t);
  } else {
    pthread_cond_wait(&t->has_news, &t->lock);
  }
  t->blocked -= is_worker;
}

void aotc_program_tasks_tell_locked(void) {
  pthread_cond_broadcast(&the_tasks.has_news);
}

aotc_program_task *aotc_program_task_make(void *coroutine, mlir_async_resume resume) {
  aotc_program_task *task = malloc(sizeof(*task));
  if (task != NULL) {
    *task = (aotc_program_task){
        .coroutine = coroutine,
        .resume = resume,
        .device = aotc_default_device_get(),
    };
  }
  return task;
}

void aotc_program_task_push_locked(aotc_program_task *task) {
  tasks *t = &the_tasks;
  begin_locked(t);
  task->next = NULL;
  *t->end = task;
  t->end = &task->next;
  ++t->queued;
  pthread_cond_signal(&t->has_work);
  staff_locked(t);
}

int32_t aotc_program_task_limit(void) {
  tasks *t = &the_tasks;
  pthread_mutex_lock(&t->lock);
  begin_locked(t);
  int32_t limit = t->limit;
  pthread_mutex_unlock(&t->lock);
  return limit;
}

// -------------------------------------------------------------------------------------------------
// The end

UTILITY void aotc_async_finish(void) {
  tasks *t = &the_tasks;
  pthread_mutex_lock(&t->lock);
  begin_locked(t);
  while (t->first != NULL || t->idle < t->thread_count) {
    aotc_program_tasks_wait_locked();
  }
  aotc_program_failure *failure = t->first_failure;
  t->first_failure = NULL;
  pthread_mutex_unlock(&t->lock);
  aotc_program_failure_adopt(failure);
}

// Tasks and their threads end before the code is unmapped, by dlclose or at the end of the process.
__attribute__((destructor)) static void stop(void) {
  tasks *t = &the_tasks;
  pthread_mutex_lock(&t->lock);
  t->is_stopping = true;
  int32_t count = t->process == getpid() ? t->thread_count : 0;
  pthread_cond_broadcast(&t->has_work);
  pthread_mutex_unlock(&t->lock);
  for (int32_t i = 0; i < count; ++i) {
    // A task that calls exit runs this on one of the threads.
    if (!pthread_equal(t->threads[i], pthread_self())) {
      pthread_join(t->threads[i], NULL);
    }
  }
  pthread_mutex_lock(&t->lock);
  while (t->first != NULL) {
    run_here_locked(t);
  }
  pthread_mutex_unlock(&t->lock);
  free(t->threads);
  t->threads = NULL;
}
