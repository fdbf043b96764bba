// RUN: not lowtide-opt %s 2>&1 | FileCheck %s

// A binding of an argument that the body does not have is an error, and no crash.
// CHECK: error: batch array "x": 'f32' has no dimension 0 that counts samples
"func.func"() <{arg_attrs = [{train.binding = #train.batch<"x">}], function_type = (f32) -> f32, sym_name = "train"}> ({
^bb0:
}) : () -> ()
