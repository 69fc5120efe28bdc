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

	bpf_get_current_comm(name, sizeof name);
	for (unsigned i = 0; i < sizeof refused; i++)
		if (name[i] != refused[i])
			return 0;
	return -1; /* EPERM */
}
