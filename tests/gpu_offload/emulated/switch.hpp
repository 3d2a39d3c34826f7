// From one stack to another: what a function must keep lies on the stack that is left, whose top goes to *from.
#pragma once

extern "C" void switch_stack(void **from, void *to) __asm__("hb_switch_stack");

#if defined(__x86_64__)
__asm__(".text\n"
        "hb_switch_stack:\n"
        "  pushq %rbp\n  pushq %rbx\n  pushq %r12\n  pushq %r13\n  pushq %r14\n  pushq %r15\n"
        "  movq %rsp, (%rdi)\n"
        "  movq %rsi, %rsp\n"
        "  popq %r15\n  popq %r14\n  popq %r13\n  popq %r12\n  popq %rbx\n  popq %rbp\n"
        "  ret\n");

// A stack that begins in `start` when it is switched to.
static void *fresh_stack(unsigned char *top, void (*start)()) {
    void **at = (void **)((unsigned long long)top & ~15ull);
    *--at = nullptr; // where `start` would return to, which makes the stack aligned as after a call
    *--at = (void *)start;
    for (int i = 0; i < 6; i++) *--at = nullptr;
    return at;
}
#elif defined(__aarch64__)
__asm__(".text\n.p2align 2\n"
        "hb_switch_stack:\n"
        "  sub sp, sp, #160\n"
        "  stp x19, x20, [sp, #0]\n  stp x21, x22, [sp, #16]\n  stp x23, x24, [sp, #32]\n"
        "  stp x25, x26, [sp, #48]\n  stp x27, x28, [sp, #64]\n  stp x29, x30, [sp, #80]\n"
        "  stp d8, d9, [sp, #96]\n  stp d10, d11, [sp, #112]\n  stp d12, d13, [sp, #128]\n  stp d14, d15, [sp, #144]\n"
        "  mov x9, sp\n  str x9, [x0]\n  mov sp, x1\n"
        "  ldp x19, x20, [sp, #0]\n  ldp x21, x22, [sp, #16]\n  ldp x23, x24, [sp, #32]\n"
        "  ldp x25, x26, [sp, #48]\n  ldp x27, x28, [sp, #64]\n  ldp x29, x30, [sp, #80]\n"
        "  ldp d8, d9, [sp, #96]\n  ldp d10, d11, [sp, #112]\n  ldp d12, d13, [sp, #128]\n  ldp d14, d15, [sp, #144]\n"
        "  add sp, sp, #160\n  ret\n");

static void *fresh_stack(unsigned char *top, void (*start)()) {
    void **at = (void **)((unsigned long long)top & ~15ull) - 20;
    for (int i = 0; i < 20; i++) at[i] = nullptr;
    at[11] = (void *)start;
    return at;
}
#else
#error "stacks are switched on x86-64 and aarch64 only"
#endif
