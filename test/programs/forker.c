/*
 * forker [nested | late]: opens a device, makes two QPs, forks; the child opens the device for itself and makes three
 * more, prints "ready" and waits to be killed. The parent prints the child's pid, waits for its death and then for a line
 * of input, and ends without closing anything.
 *
 * nested: the child is in a pid namespace of its own, where it is pid 1.
 * late: the parent waits for a line before it forks; the child makes a PD on its parent's open device and destroys it, no
 * more.
 */
#include <infiniband/verbs.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static struct ibv_context *context;

static void make(int count)
{
	struct ibv_device **list = ibv_get_device_list(NULL);

	context = list && list[0] ? ibv_open_device(list[0]) : NULL;
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

static void make_and_destroy(void)
{
	struct ibv_pd *pd = ibv_alloc_pd(context);

	if (!pd || ibv_dealloc_pd(pd))
		exit(1);
}

int main(int argc, char **argv)
{
	int nested = argc > 1 && !strcmp(argv[1], "nested");
	int late = argc > 1 && !strcmp(argv[1], "late");

	setvbuf(stdout, NULL, _IOLBF, 0);
	make(2);
	if (late) {
		puts("waiting");
		if (getchar() == EOF)
			return 1;
	}
	if (nested && unshare(CLONE_NEWPID))
		return 1;
	pid_t child = fork();
	if (child < 0) {
		perror("fork");
		return 1;
	}
	if (child == 0) {
		if (late)
			make_and_destroy();
		else
			make(3);
		puts("ready");
		for (;;)
			pause();
	}
	printf("child %d\n", (int)child);
	if (nested) {
		int kill_now = getchar();

		if (kill_now == EOF || child < 1 || kill(child, SIGKILL))
			return 1;
	}
	waitpid(child, NULL, 0);
	puts("child gone");
	return getchar() == EOF;
}
