/*
 * forker [nested]: opens a device, makes two QPs, forks; the child opens the device for itself and makes three more,
 * prints "ready" and waits to be killed. The parent prints the child's pid, waits for its death and then for a line of
 * input, and ends without closing anything.
 *
 * nested: the child is in a pid namespace of its own, where it is pid 1.
 */
#include <infiniband/verbs.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static void make(int count)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *context = list && list[0] ? ibv_open_device(list[0]) : NULL;
	struct ibv_pd *pd = context ? ibv_alloc_pd(context) : NULL;
	struct ibv_cq *cq = context ? ibv_create_cq(context, 16, NULL, NULL, 0) : NULL;
	struct ibv_qp_init_attr attr = {
		.send_cq = cq,
		.recv_cq = cq,
		.cap = { .max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1 },
		.qp_type = IBV_QPT_RC,
	};

	for (int i = 0; i < count; ++i)
		if (!pd || !cq || !ibv_create_qp(pd, &attr))
			exit(1);
}

int main(int argc, char **argv)
{
	(void)argv;
	setvbuf(stdout, NULL, _IOLBF, 0);
	make(2);
	if (argc > 1 && unshare(CLONE_NEWPID))
		return 1;
	pid_t child = fork();
	if (child < 0) {
		perror("fork");
		return 1;
	}
	if (child == 0) {
		make(3);
		puts("ready");
		for (;;)
			pause();
	}
	printf("child %d\n", (int)child);
	if (argc > 1) {
		int kill_now = getchar();

		if (kill_now == EOF || child < 1 || kill(child, SIGKILL))
			return 1;
	}
	waitpid(child, NULL, 0);
	puts("child gone");
	return getchar() == EOF;
}
