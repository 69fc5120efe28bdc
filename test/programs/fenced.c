/*
 * Takes the right to make ioctls of verbs from itself, and becomes another program.
 *
 *   fenced seccomp|landlock PROGRAM...
 *
 * seccomp: each is refused with EACCES. landlock: those by files that are opened from now on; it takes Linux 6.10.
 */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <rdma/rdma_user_ioctl.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Of linux/landlock.h, which Debian 12 has from before this right. */
static const unsigned long long ioctl_of_devices = 1 << 15;

static int by_seccomp(void)
{
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_ioctl, 0, 3),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[1])),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, RDMA_VERBS_IOCTL, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EACCES),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { .len = sizeof filter / sizeof *filter, .filter = filter };

	return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

/* Rules that allow nothing. */
static int by_landlock(void)
{
	int rules = syscall(SYS_landlock_create_ruleset, &ioctl_of_devices, sizeof ioctl_of_devices, 0);

	return rules < 0 ? -1 : syscall(SYS_landlock_restrict_self, rules, 0);
}

int main(int argc, char **argv)
{
	if (argc < 3)
		return 2;
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || (strcmp(argv[1], "landlock") ? by_seccomp() : by_landlock())) {
		perror(argv[1]);
		return 1;
	}
	execv(argv[2], argv + 2);
	perror(argv[2]);
	return 1;
}
