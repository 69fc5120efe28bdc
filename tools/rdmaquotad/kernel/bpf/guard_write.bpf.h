// write(2) on a device's file, as programs make requests that are older than the ioctl. By no other call than that, since what
// it writes is found by the thread's registers; and killing stops a thread at the end of its system call, so one that makes
// many requests at once must not begin.
#pragma once

#include "guard_look.bpf.h"

// Of the kernel: MAY_WRITE; PF_IO_WORKER, PF_USER_WORKER and PF_KTHREAD.
enum { may_write = 2, no_program = 0x10 | 0x4000 | 0x200000 };

#if defined(__TARGET_ARCH_x86)
struct pt_regs___call {
    unsigned long ax, orig_ax, cx, si;
} __attribute__((preserve_access_index));

// 1 is write, 4 that of 32-bit programs. Neither number is a writing call of the other's. Until a call returns, its result is
// -ENOSYS.
static __always_inline u64 address_in(const void *registers) {
    const struct pt_regs___call *regs = registers;
    if ((int)BPF_CORE_READ(regs, ax) != -38) return 0;
    switch (BPF_CORE_READ(regs, orig_ax)) {
        case 1: return BPF_CORE_READ(regs, si);
        case 4: return (u32)BPF_CORE_READ(regs, cx);
    }
    return 0;
}
#elif defined(__TARGET_ARCH_arm64)
struct pt_regs___call {
    u64 regs[31];
    int syscallno;
} __attribute__((preserve_access_index));

static __always_inline u64 address_in(const void *registers) {
    const struct pt_regs___call *regs = registers;
    int number = BPF_CORE_READ(regs, syscallno);
    return number == 64 || number == 4 ? BPF_CORE_READ(regs, regs[1]) : 0;
}
#else
// Whose registers are not known: what is written cannot be looked at there, so that nothing can be.
static __always_inline u64 address_in(const void *registers) { return 0; }
#endif

// Where what is being written lies; 0: the thread is not in write(2) itself. Not writev(2) or its like, nor io_uring, by which
// one process also writes with the credentials of another, and whose work the kernel may do at the end of any call: who uses it
// writes no requests.
static __always_inline u64 written_from(void) {
    struct task_struct *task = bpf_get_current_task_btf();
    if (task->flags & no_program || BPF_CORE_READ(task, io_uring)) return 0;
    return address_in((const void *)bpf_task_pt_regs(task));
}

// Few files have the old `write` only, which are told apart last.
static __always_inline bool has_old_write(struct file *file) { return file->f_op->write && !file->f_op->write_iter; }

static __always_inline int look_at_write(struct file *file, int mask) {
    u64 from;
    if (!(mask & may_write) || !has_old_write(file)) return 0;
    if (guard_mode == guard_off || !is_uverbs(file)) return 0;
    from = written_from();
    if (from) return look((u64)BPF_CORE_READ(file, private_data), file, from, written);
    return guard_mode == guard_deny ? -13 : 0;  // EACCES, as the kernel has it for a file that another one opened
}
