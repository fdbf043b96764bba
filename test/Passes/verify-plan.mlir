// RUN: lowtide-opt %s --verify-plan --split-input-file --verify-diagnostics

plan.module attributes {format_version = 3 : i64, producer = "test", target = "reference", threads_max = 1 : i64,
    model_digest = ""} {
  plan.arena @transient transient in device bytes 256 align 64
  plan.arena @io io in device bytes 64 align 64
  plan.program @train batch 4 peak 64 {
    plan.binding metric "loss" tensor<f32> @io[0 + 4] : 0 -> 2
    plan.fill @transient[0 + 64] : 1 pattern 0 of 4
    plan.copy @transient[0 + 4] : 1 to @io[0 + 4] : 2
  }
}

// -----

plan.module attributes {format_version = 3 : i64, producer = "test", target = "reference", threads_max = 1 : i64,
    model_digest = ""} {
  plan.arena @transient transient in device bytes 256 align 64
  plan.arena @io io in device bytes 64 align 64
  plan.program @train batch 4 peak 64 {
    plan.binding metric "loss" tensor<f32> @io[0 + 4] : 0 -> 3
    plan.fill @transient[0 + 64] : 1 pattern 0 of 4
    // expected-note@below {{what these bytes hold is written here}}
    plan.fill @transient[0 + 4] : 2 pattern 0 of 4
    // expected-error@below {{the plan cannot be proved: entry 'train': instruction 2, a copy at h.0.up: reads value 1, but bytes 0–4 of arena 'transient' hold value 2}}
    plan.copy @transient[0 + 4] : 1 to @io[0 + 4] : 3 at "h.0.up"
  }
}

// -----

// expected-error@below {{entry 'train': declares a peak of 60 live bytes; it is 64}}
plan.module attributes {format_version = 3 : i64, producer = "test", target = "reference", threads_max = 1 : i64,
    model_digest = ""} {
  plan.arena @transient transient in device bytes 256 align 64
  plan.program @train batch 4 peak 60 {
    plan.fill @transient[0 + 64] : 1 pattern 0 of 4
  }
}

// -----

plan.module attributes {format_version = 3 : i64, producer = "test", target = "reference", threads_max = 1 : i64,
    model_digest = ""} {
  plan.arena @transient transient in device bytes 256 align 64
  plan.program @train batch 4 peak 0 {
    // expected-error@below {{has no address: run plan-place first}}
    plan.buffer "b0" in @transient bytes 100
    plan.fill @b0[0 + 100] : 2 pattern 0 of 4
  }
}

// -----

plan.module attributes {format_version = 3 : i64, producer = "test", target = "reference", threads_max = 1 : i64,
    model_digest = ""} {
  plan.arena @transient transient in device bytes 256 align 64
  // expected-error@below {{declares a peak of 0 live bytes; the verifier counts 64}}
  plan.program @train batch 4 peak 0 {
    plan.fill @transient[0 + 64] : 1 pattern 0 of 4
  }
}

// -----

// The machine code of a kernel touches what its footprint says: no launch may name other extents or sizes.
plan.module attributes {format_version = 3 : i64, producer = "test", target = "reference", threads_max = 1 : i64,
    model_digest = ""} {
  plan.arena @transient transient in device bytes 256 align 64
  plan.kernel @double reads 1 writes 1 footprints [#plan.footprint<16 by 4 : [tensor<16xf32>] -> [tensor<16xf32>]>]
  plan.program @train batch 4 peak 0 {
    plan.fill @transient[0 + 64] : 1 pattern 0 of 4
    // expected-error@below {{instruction 1, kernel 'double': kernel 'double' states extent 16 by 4 over 64 bytes to 64; the launch has extent 99999999 by 4 over 64 bytes to 64}}
    plan.launch @double reads [@transient[0 + 64] : 1] writes [@transient[64 + 64] : 2] extent 99999999 grain 4
  }
}

// -----

// A failure in a loop is reported at the instruction of its body.
plan.module attributes {format_version = 3 : i64, producer = "test", target = "reference", threads_max = 1 : i64,
    model_digest = ""} {
  plan.arena @transient transient in device bytes 256 align 64
  plan.program @train batch 4 peak 0 {
    plan.fill @transient[0 + 64] : 1 pattern 0 of 4
    plan.repeat 3 {
      plan.fill @transient[64 + 64] : 2 pattern 0 of 4
      // expected-error@below {{instruction 1, a repeat: instruction 1, a copy: reads value 7 from undefined bytes 192–256 of arena 'transient'}}
      plan.copy @transient[192 + 64] : 7 to @transient[128 + 64] : 3
    }
  }
}

// -----

plan.module attributes {format_version = 3 : i64, producer = "test", target = "reference", threads_max = 1 : i64,
    model_digest = ""} {
  // expected-error@below {{has a footprint of 2 operands and 1 results; the kernel has 1 and 1}}
  plan.kernel @double reads 1 writes 1
      footprints [#plan.footprint<16 by 4 : [tensor<16xf32>, tensor<f32>] -> [tensor<16xf32>]>]
}

// -----

plan.module attributes {format_version = 3 : i64, producer = "test", target = "reference", threads_max = 1 : i64,
    model_digest = ""} {
  // expected-error@below {{has a footprint in place of operand 1, which it does not have}}
  plan.kernel @double reads 1 writes 1
      footprints [#plan.footprint<16 by 4 : [tensor<16xf32>] -> [tensor<16xf32>] in_place 0 on 0, 0 on 1>]
}

// -----

// A kernel may read an operand after it has written a result: the result lies there only if the footprint says so.
plan.module attributes {format_version = 3 : i64, producer = "test", target = "reference", threads_max = 1 : i64,
    model_digest = ""} {
  plan.arena @transient transient in device bytes 256 align 64
  plan.kernel @double reads 1 writes 1
      footprints [#plan.footprint<16 by 4 : [tensor<16xf32>] -> [tensor<16xf32>] in_place 0 on 0>]
  plan.kernel @turn reads 1 writes 1 footprints [#plan.footprint<16 by 4 : [tensor<16xf32>] -> [tensor<16xf32>]>]
  plan.program @train batch 4 peak 64 {
    plan.fill @transient[0 + 64] : 1 pattern 0 of 4
    plan.launch @double reads [@transient[0 + 64] : 1] writes [@transient[0 + 64] : 2] extent 16 grain 4
    // expected-error@below {{instruction 2, kernel 'turn': result 0 lies where operand 0 does, which its kernel may read after that}}
    plan.launch @turn reads [@transient[0 + 64] : 2] writes [@transient[0 + 64] : 3] extent 16 grain 4
  }
}

// -----

// What the rounds of a repeat add up lies in another memory between them: loaded, replaced and stored in each.
plan.module attributes {format_version = 3 : i64, producer = "test", target = "reference", threads_max = 1 : i64,
    model_digest = ""} {
  plan.arena @transient transient in device bytes 256 align 64
  plan.arena @host transient in host bytes 64 align 64
  plan.arena @io io in device bytes 64 align 64
  plan.kernel @double reads 1 writes 1
      footprints [#plan.footprint<16 by 4 : [tensor<16xf32>] -> [tensor<16xf32>]>]
  plan.program @train batch 4 peak 128 {
    plan.binding metric "loss" tensor<f32> @io[0 + 4] : 0 -> 7
    plan.fill @transient[0 + 64] : 1 pattern 0 of 4
    plan.copy @transient[0 + 64] : 1 to @host[0 + 64] : 2
    plan.repeat 2 carries [@host[0 + 64] : 2 -> 5] {
      plan.copy @host[0 + 64] : 2 to @transient[64 + 64] : 3
      plan.launch @double reads [@transient[64 + 64] : 3] writes [@transient[128 + 64] : 4] extent 16 grain 4
      plan.copy @transient[128 + 64] : 4 to @host[0 + 64] : 5
    }
    plan.copy @host[0 + 64] : 5 to @transient[64 + 64] : 6
    plan.copy @transient[64 + 4] : 6 to @io[0 + 4] : 7
  }
}

// -----

// A round that does not store its sum hands on that of the round before it.
plan.module attributes {format_version = 3 : i64, producer = "test", target = "reference", threads_max = 1 : i64,
    model_digest = ""} {
  plan.arena @transient transient in device bytes 256 align 64
  plan.arena @host transient in host bytes 64 align 64
  plan.arena @io io in device bytes 64 align 64
  plan.kernel @double reads 1 writes 1
      footprints [#plan.footprint<16 by 4 : [tensor<16xf32>] -> [tensor<16xf32>]>]
  plan.program @train batch 4 peak 128 {
    plan.binding metric "loss" tensor<f32> @io[0 + 4] : 0 -> 7
    plan.fill @transient[0 + 64] : 1 pattern 0 of 4
    plan.copy @transient[0 + 64] : 1 to @host[0 + 64] : 2
    // expected-error@below {{carries value 5, but bytes 0–64 of arena 'host' hold value 2}}
    plan.repeat 2 carries [@host[0 + 64] : 2 -> 5] {
      plan.copy @host[0 + 64] : 2 to @transient[64 + 64] : 3
      plan.launch @double reads [@transient[64 + 64] : 3] writes [@transient[128 + 64] : 4] extent 16 grain 4
    }
    plan.copy @host[0 + 64] : 5 to @transient[64 + 64] : 6
    plan.copy @transient[64 + 4] : 6 to @io[0 + 4] : 7
  }
}

// -----

// A round that stores before it loads reads what it has stored.
plan.module attributes {format_version = 3 : i64, producer = "test", target = "reference", threads_max = 1 : i64,
    model_digest = ""} {
  plan.arena @transient transient in device bytes 256 align 64
  plan.arena @host transient in host bytes 64 align 64
  plan.program @train batch 4 peak 64 {
    plan.fill @transient[0 + 64] : 1 pattern 0 of 4
    plan.copy @transient[0 + 64] : 1 to @host[0 + 64] : 2
    plan.repeat 2 carries [@host[0 + 64] : 2 -> 5] {
      plan.fill @transient[128 + 64] : 4 pattern 0 of 4
      // expected-note@below {{what these bytes hold is written here}}
      plan.copy @transient[128 + 64] : 4 to @host[0 + 64] : 5
      // expected-error@below {{reads value 2, but bytes 0–64 of arena 'host' hold value 5}}
      plan.copy @host[0 + 64] : 2 to @transient[64 + 64] : 3
    }
  }
}
