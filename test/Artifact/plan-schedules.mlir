// What a schedule has goes into the plan and comes back.
// RUN: lowtide-translate --export-plan %s -o %t.plan
// RUN: lowtide-translate --import-plan %t.plan | FileCheck %s
// RUN: sed 's/kind = "wsd".*/kind = "multistep", lr = 1.0 : f64, gamma = 0.5 : f64, milestones = array<i64: 3, 7>}} {/' %s > %t.steps.mlir
// RUN: lowtide-translate --export-plan %t.steps.mlir -o %t.plan
// RUN: lowtide-translate --import-plan %t.plan | FileCheck %s --check-prefix=STEPS
// RUN: sed 's/kind = "wsd".*/kind = "cosine-restarts", lr = 1.0 : f64, restart_steps = 50 : i64, restart_mult = 2 : i64}} {/' %s > %t.restarts.mlir
// RUN: lowtide-translate --export-plan %t.restarts.mlir -o %t.plan
// RUN: lowtide-translate --import-plan %t.plan | FileCheck %s --check-prefix=RESTARTS
// RUN: sed 's/kind = "wsd".*/kind = "sawtooth"}} {/' %s > %t.unknown.mlir
// RUN: not lowtide-translate --export-plan %t.unknown.mlir -o %t.plan 2>&1 | FileCheck %s --check-prefix=UNKNOWN

// CHECK: schedule = {curve = "1-sqrt", decay_steps = 20 : i64, kind = "wsd", lr = 1.000000e+00 : f64, min_lr = 2.500000e-01 : f64, total_steps = 90 : i64, warmup_steps = 5 : i64}
// STEPS: schedule = {gamma = 5.000000e-01 : f64, kind = "multistep", lr = 1.000000e+00 : f64, milestones = array<i64: 3, 7>
// RESTARTS: schedule = {kind = "cosine-restarts", {{.*}}restart_mult = 2 : i64, restart_steps = 50 : i64
// UNKNOWN: error: {{.*}}schedule 'sawtooth' is unknown
plan.module attributes {format_version = 3 : i64, producer = "test", target = "reference", threads_max = 1 : i64,
    model_digest = "", optimizer = {kind = "sgd"}, schedule = {
    kind = "wsd", lr = 1.0 : f64, warmup_steps = 5 : i64, total_steps = 90 : i64, min_lr = 0.25 : f64, decay_steps = 20 : i64, curve = "1-sqrt"}} {
}
