/*===- lowtide.h - execute compiled training steps ------------------------===*/
/*
   load -> bind -> step. Opaque handles, no global state, nothing thrown. Every function that can fail returns a status:
   NULL is success, anything else belongs to the caller and is released with lowtide_status_free.

   One session may be used by one thread at a time; sessions are independent of each other.
*/
#ifndef LOWTIDE_RT_LOWTIDE_H
#define LOWTIDE_RT_LOWTIDE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct lowtide_status lowtide_status;
typedef struct lowtide_session lowtide_session;

/* Kinds of failure; the numbers are the exit codes of the tools. */
typedef enum lowtide_code {
  LOWTIDE_OK = 0,
  LOWTIDE_USAGE = 1,
  LOWTIDE_BAD_INPUT = 2,
  LOWTIDE_UNSUPPORTED = 3,
  LOWTIDE_OVER_BUDGET = 4,
  LOWTIDE_VERIFY_FAILED = 5,
  LOWTIDE_DEVICE = 6,
  LOWTIDE_NON_FINITE = 7,
  LOWTIDE_IO = 8,
  LOWTIDE_LOSS_MISMATCH = 9,
  LOWTIDE_INTERNAL = 70
} lowtide_code;

/* LOWTIDE_OK for NULL. */
lowtide_code lowtide_status_code(const lowtide_status *status);
/* What was found; "" for NULL. Valid until the status is freed. */
const char *lowtide_status_message(const lowtide_status *status);
/* The file, entry or instruction it speaks of; may be "". */
const char *lowtide_status_where(const lowtide_status *status);
void lowtide_status_free(lowtide_status *status);

/* Element types; the numbers are those of plan.proto. */
typedef enum lowtide_dtype {
  LOWTIDE_F64 = 1,
  LOWTIDE_F32 = 2,
  LOWTIDE_F16 = 3,
  LOWTIDE_BF16 = 4,
  LOWTIDE_I64 = 5,
  LOWTIDE_I32 = 6,
  LOWTIDE_I16 = 7,
  LOWTIDE_I8 = 8,
  LOWTIDE_U8 = 9,
  LOWTIDE_BOOL = 10,
  LOWTIDE_U16 = 11,
  LOWTIDE_U32 = 12,
  LOWTIDE_U64 = 13
} lowtide_dtype;

typedef enum lowtide_kind {
  LOWTIDE_PARAM = 1,
  LOWTIDE_STATE = 2,
  LOWTIDE_CONSTANT = 3,
  LOWTIDE_BATCH = 4,  /* written by the caller before each step */
  LOWTIDE_SCALAR = 5, /* written by lowtide_session_write_real, _write_integer or _write_scalars */
  LOWTIDE_METRIC = 6, /* read after each step */
  LOWTIDE_OUTPUT = 7,
  LOWTIDE_GRADIENT = 8 /* of the parameter NAME; called grad/NAME */
} lowtide_kind;

/* A view of a tensor inside an arena; name, dims and data live as long as the session. Row-major. */
typedef struct lowtide_tensor {
  const char *name;
  lowtide_kind kind;
  lowtide_dtype dtype;
  size_t rank;
  const int64_t *dims;
  void *data;
  uint64_t bytes;
} lowtide_tensor;

typedef struct lowtide_bind_options {
  uint32_t threads; /* 0: all cores; results do not depend on it */
  int poison;       /* fill transient memory with NaN before each step */
  int random_init;  /* start parameters from random numbers */
  uint64_t random_seed;
  uint32_t gpu; /* CUDA: which of the visible GPUs, from 0 */
  /* CPU: the folder of the file in which what a plan has in space file waits (its path is copied); NULL or empty: the
     system's for temporary files. LOWTIDE_IO: it takes no file; LOWTIDE_OVER_BUDGET: it has no room. */
  const char *spill;
} lowtide_bind_options;

/* Maps, checks and proves an artifact. Running it is running a program: take it from where you would take one. */
lowtide_status *lowtide_session_load(const char *path, lowtide_session **session);
void lowtide_session_free(lowtide_session *session);

/* Allocates all memory; `options` may be NULL. Nothing is allocated afterwards by step, write_real,
   write_integer and write_scalars. */
lowtide_status *lowtide_session_bind(lowtide_session *session, const lowtide_bind_options *options);

size_t lowtide_session_entry_count(const lowtide_session *session);
/* NULL if out of range. */
const char *lowtide_session_entry_name(const lowtide_session *session, size_t index);

size_t lowtide_session_tensor_count(const lowtide_session *session, const char *entry);
/* By position, or by name; the session must be bound. */
lowtide_status *lowtide_session_tensor_at(const lowtide_session *session, const char *entry, size_t index,
                                          lowtide_tensor *tensor);
lowtide_status *lowtide_session_tensor(const lowtide_session *session, const char *entry, const char *name,
                                       lowtide_tensor *tensor);

/* Learning rate of the artifact's schedule at a step. */
double lowtide_session_learning_rate(const lowtide_session *session, int64_t step);
/* Writes a step scalar by its name, where the entry has it: "lr", a real number; "step", "seed" and "row" (first sample
   of the batch since the start), integers. They keep their values until they are written again. LOWTIDE_USAGE: this
   runtime knows no scalar of that name, or the scalar takes the other kind of number. */
lowtide_status *lowtide_session_write_real(lowtide_session *session, const char *entry, const char *name, double value);
lowtide_status *lowtide_session_write_integer(lowtide_session *session, const char *entry, const char *name,
                                              int64_t value);
/* Writes lr, step, seed and row, where the entry has them, in one call. */
lowtide_status *lowtide_session_write_scalars(lowtide_session *session, const char *entry, double lr, int64_t step,
                                              int64_t seed, int64_t row);
/* Executes an entry once on what its tensors hold. */
lowtide_status *lowtide_session_step(lowtide_session *session, const char *entry);
/* On a device with memory of its own tensor data are the host's copy: step takes batch arrays and brings metrics back.
   download brings parameters and state, and the outputs of `entry` (may be NULL); upload hands parameters and state
   that were written after a download to the device. On the CPU upload does nothing, and download matters for parameters
   and state that wait in a file (`spill`) alone: the memory at their data is there from lowtide_session_tensor and
   lowtide_session_tensor_at until the next step, save, resume or bind, and again from the next download on; between
   these nothing may touch it. Where a step leaves its updates for the next one (lowtide compile --updates=deferred),
   parameters and state are those after it from the next download on, on the CPU, too, and upload drops an update that
   is still to be made: what was written is what there is. */
lowtide_status *lowtide_session_download(lowtide_session *session, const char *entry);
lowtide_status *lowtide_session_upload(lowtide_session *session);

/* Batches ahead: `fill` writes the batch arrays of step `step` while the step before it runs. It is called on a thread
   of the session's own, for one step after the other from `first_step` (0 to 2^62) on; `arrays` are views of memory of
   the host in which the values belong, in the order of the entry, and hold until `fill` returns. From now on
   lowtide_session_step waits for the batch of its step, and takes it. `fill` returns 0, or another number where there
   is no batch: the step that would need it fails with LOWTIDE_BAD_INPUT. A NULL `fill` ends the thread, as
   lowtide_session_free and a second call do, once `fill` has returned. */
typedef int (*lowtide_fill)(void *context, int64_t step, const lowtide_tensor *arrays, size_t count);
lowtide_status *lowtide_session_feed(lowtide_session *session, const char *entry, int64_t first_step, lowtide_fill fill,
                                     void *context);
/* Seconds that steps have waited for their batches since lowtide_session_feed; 0 without it. */
double lowtide_session_data_seconds(const lowtide_session *session);

/* Bytes of the arenas on the device: in the plan, and as the allocator counts them. */
uint64_t lowtide_session_planned_bytes(const lowtide_session *session);
uint64_t lowtide_session_allocated_bytes(const lowtide_session *session);

/* Checkpoints (docs/artifact.md) of a session that is bound: writes <directory>/step-<step>, of a step from 0 on; loads
   the one that <directory>/latest names, or the last sound one, and returns its next step. A sound checkpoint of the
   same step and other bits stays as step-<step>.replaced-<number>. LOWTIDE_NON_FINITE: a parameter or state is not
   finite, and nothing is written. */
lowtide_status *lowtide_session_save(const lowtide_session *session, const char *directory, int64_t step, int64_t seed);
lowtide_status *lowtide_session_resume(lowtide_session *session, const char *directory, int64_t *step, int64_t *seed);

#ifdef __cplusplus
}
#endif

#endif /* LOWTIDE_RT_LOWTIDE_H */
