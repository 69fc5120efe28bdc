/*
 * Another security module: refuses every ioctl of threads that are named "refused". What was attached to the hook later
 * is asked first, so a guard that comes after it has allowed by then what this refuses.
 */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

char terms[] SEC("license") = "GPL";

SEC("lsm/file_ioctl")
int refuse(unsigned long long *arguments)
{
	static const char refused[] = "refused";
	char name[16];
	long answer = 0;

	bpf_get_current_comm(name, sizeof name);
	if (!bpf_strncmp(name, sizeof refused, refused))
		answer = -1; /* EPERM */
	/* No arithmetic: the verifier has to see that it is one of these. */
	asm volatile("" : "+r"(answer));
	return (int)answer;
}
