// write(2) on a device's file: only the commit of an object tells what it makes, and judges. Killing stops a thread at the end of
// its system call, so a call that makes many requests at once must not begin.
#pragma once

#include "guard_look.bpf.h"

// Of the kernel: MAY_WRITE; PF_IO_WORKER, PF_USER_WORKER and PF_KTHREAD.
enum { may_write = 2, no_program = 0x10 | 0x4000 | 0x200000 };

#if defined(__TARGET_ARCH_x86)
struct pt_regs___call {
    unsigned long ax, orig_ax;
} __attribute__((preserve_access_index));

// 1 is write, 4 that of 32-bit programs. Neither number is a writing call of the other's. Until a call returns, its result is
// -ENOSYS.
static __always_inline bool is_in_write(const void *registers) {
    const struct pt_regs___call *regs = registers;
    u64 number = BPF_CORE_READ(regs, orig_ax);
    return (int)BPF_CORE_READ(regs, ax) == -38 && (number == 1 || number == 4);
}
#elif defined(__TARGET_ARCH_arm64)
struct pt_regs___call {
    int syscallno;
} __attribute__((preserve_access_index));

static __always_inline bool is_in_write(const void *registers) {
    const struct pt_regs___call *regs = registers;
    int number = BPF_CORE_READ(regs, syscallno);
    return number == 64 || number == 4;
}
#else
#error "the guard knows the registers of x86-64 and arm64 only"
#endif

// Not writev(2) or its like, nor io_uring, by which one process also writes with the credentials of another, and whose work the
// kernel may do at the end of any call: who uses it writes no requests.
static __always_inline bool writes_itself(void) {
    struct task_struct *task = bpf_get_current_task_btf();
    if (task->flags & no_program || BPF_CORE_READ(task, io_uring)) return false;
    return is_in_write((const void *)bpf_task_pt_regs(task));
}

// Few files have the old `write` only, which are told apart last.
static __always_inline bool has_old_write(struct file *file) { return file->f_op->write && !file->f_op->write_iter; }

// A file without a context: the kernel takes nothing but a request for one. As by ioctl, one thread at a time opens it.
static __always_inline int look_at_written_context(u64 ufile) {
    settle_reservation(current_thread());
    if (!begin_opening(ufile)) return uncountable();
    return reserve_anywhere(0, written_context, ufile);
}

// A tenant that exceeds a limit writes no requests at all: what they make, and whether they are not changed, is not known.
static __always_inline int look_at_write(struct file *file, int mask) {
    struct kernel_use *use;
    u64 ufile;
    if (!(mask & may_write) || !has_old_write(file)) return 0;
    if (guard_mode == guard_off || !is_uverbs(file)) return 0;
    if (guard_mode == guard_deny && !writes_itself()) return -13;  // EACCES, as the kernel has it for a file that another one opened
    ufile = (u64)BPF_CORE_READ(file, private_data);
    use = opener_of(ufile);
    if (use && retire_stale(use, ufile)) use = 0;
    if (!has_context(ufile)) return refusal(look_at_written_context(ufile));
    if (!use || guard_mode != guard_deny) return 0;
    if (makes_nothing(use, kind_handle)) return refusal(errno_of((u32)use->id));
    return refusal(refuses_more((u32)use->id));
}
