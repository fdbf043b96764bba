//===- FiberSwitch.cpp - from one stack to another -------------------------===//

#include "runtime/devices/FakeCuda/FiberSwitch.h"

#include <cstdlib>

#if defined(__x86_64__)
asm(R"(
    .text
    .globl lowtide_fiber_switch
    .type lowtide_fiber_switch,@function
    .p2align 4
lowtide_fiber_switch:
    pushq %rbp
    pushq %rbx
    pushq %r12
    pushq %r13
    pushq %r14
    pushq %r15
    movq %rsp, (%rdi)
    movq %rsi, %rsp
    popq %r15
    popq %r14
    popq %r13
    popq %r12
    popq %rbx
    popq %rbp
    popq %rcx
    jmpq *%rcx
    .size lowtide_fiber_switch, .-lowtide_fiber_switch
    .section .note.GNU-stack,"",@progbits
    .text
)");
#else
extern "C" void lowtide_fiber_switch(void **, void *) { std::abort(); } // never reached: the device refuses before
#endif
