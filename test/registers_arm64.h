/* What <asm/ptrace.h> has on arm64, for compiling the BPF program for it elsewhere. */
struct user_pt_regs {
	unsigned long long regs[31];
	unsigned long long sp;
	unsigned long long pc;
	unsigned long long pstate;
};
