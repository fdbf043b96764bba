// RUN: lowtide-opt %s --split-input-file --verify-diagnostics

// Which way a copy goes, its two arenas say.
plan.module attributes {format_version = 3 : i64, producer = "test", target = "reference", threads_max = 1 : i64,
    model_digest = ""} {
  plan.arena @transient transient in device bytes 64 align 64
  plan.arena @evicted transient in host_pinned bytes 64 align 64
  plan.arena @pageable transient in host bytes 64 align 64
  plan.program @run batch 0 peak 0 {
    plan.fill @transient[0 + 64] : 1 pattern 0 of 4
    plan.copy @transient[0 + 64] : 1 to @evicted[0 + 64] : 2
    plan.copy @evicted[0 + 64] : 2 to @transient[0 + 64] : 3
    plan.copy @transient[0 + 64] : 3 to @pageable[0 + 64] : 4
  }
}

// -----

plan.module attributes {format_version = 3 : i64, producer = "test", target = "reference", threads_max = 1 : i64,
    model_digest = ""} {
  plan.arena @evicted transient in host_pinned bytes 64 align 64
  plan.arena @pageable transient in host bytes 64 align 64
  plan.program @run batch 0 peak 0 {
    // expected-error@below {{copies from space host_pinned to space host; it copies within the device, or between it and another memory}}
    plan.copy @evicted[0 + 64] : 1 to @pageable[0 + 64] : 2
  }
}

// -----

plan.module attributes {format_version = 3 : i64, producer = "test", target = "reference", threads_max = 1 : i64,
    model_digest = ""} {
  plan.arena @transient transient in device bytes 64 align 64
  plan.arena @spilled transient in file bytes 64 align 64
  plan.arena @pageable transient in host bytes 64 align 64
  plan.program @run batch 0 peak 0 {
    plan.copy @transient[0 + 64] : 1 to @spilled[0 + 64] : 2
    // expected-error@below {{copies from space file to space host}}
    plan.copy @spilled[0 + 64] : 2 to @pageable[0 + 64] : 3
  }
}

// -----

plan.module attributes {format_version = 3 : i64, producer = "test", target = "reference", threads_max = 1 : i64,
    model_digest = ""} {
  plan.arena @evicted transient in host_pinned bytes 64 align 64
  plan.program @run batch 0 peak 0 {
    // expected-error@below {{names @evicted in space host_pinned; only copies reach other spaces than the device}}
    plan.fill @evicted[0 + 64] : 1 pattern 0 of 4
  }
}

// -----

plan.module attributes {format_version = 3 : i64, producer = "test", target = "reference", threads_max = 1 : i64,
    model_digest = ""} {
  // expected-error@below {{for params lies in space host; what bindings lie in is in space device, but for parameters and optimizer state in a file or pinned memory of the host}}
  plan.arena @params params in host bytes 64 align 64
}

// -----

plan.module attributes {format_version = 3 : i64, producer = "test", target = "cuda-emulated", threads_max = 1 : i64,
    model_digest = ""} {
  plan.arena @exchange_in exchange_in in device bytes 512 align 256
  plan.program @run batch 0 peak 0 {
    // expected-error@below {{names arena @exchange_in, which is the runtime's own}}
    plan.fill @exchange_in[0 + 64] : 1 pattern 0 of 4
  }
}
