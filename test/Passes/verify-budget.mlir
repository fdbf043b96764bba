// RUN: lowtide-opt %s --verify-budget --split-input-file --verify-diagnostics

// Arenas that fill the budget to the byte.
module attributes {train.device_budget = 5248 : i64} {
  plan.module attributes {format_version = 3 : i64, producer = "test", target = "cpu:x86-64-v3", threads_max = 2 : i64,
      model_digest = ""} {
    plan.arena @params params in device bytes 1024 align 64
    plan.arena @transient transient in device bytes 4096 align 64
    plan.arena @io io in device bytes 128 align 64
  }
}

// -----

// One byte less.
module attributes {train.device_budget = 5247 : i64} {
  // expected-error@below {{the plan needs 5248 bytes (5.12 KiB), the budget is 5247}}
  plan.module attributes {format_version = 3 : i64, producer = "test", target = "cpu:x86-64-v3", threads_max = 2 : i64,
      model_digest = ""} {
    plan.arena @params params in device bytes 1024 align 64
    plan.arena @transient transient in device bytes 4096 align 64
    plan.arena @io io in device bytes 128 align 64
  }
}

// -----

// What lies on the host is not the device's.
module attributes {train.device_budget = 4096 : i64} {
  plan.module attributes {format_version = 3 : i64, producer = "test", target = "cpu:x86-64-v3", threads_max = 2 : i64,
      model_digest = ""} {
    plan.arena @transient transient in device bytes 4096 align 64
    plan.arena @evicted transient in host_pinned bytes 65536 align 64
  }
}

// -----

// No budget was asked for.
plan.module attributes {format_version = 3 : i64, producer = "test", target = "cpu:x86-64-v3", threads_max = 2 : i64,
    model_digest = ""} {
  plan.arena @transient transient in device bytes 4096 align 64
}
