/*
 * verbs_death QPS: a child creates so many QPs and is killed; prints the ns of the parent's next
 * ibv_create_qp. A verbs program that knows nothing of quotas; run where the tenant may have QPS.
 */
#include <infiniband/verbs.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static struct ibv_pd *pd;
static struct ibv_cq *cq;

static int open_first(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *context = list && list[0] ? ibv_open_device(list[0]) : NULL;

	pd = context ? ibv_alloc_pd(context) : NULL;
	cq = pd ? ibv_create_cq(context, 16, NULL, NULL, 0) : NULL;
	return cq != NULL;
}

static struct ibv_qp *create_qp(void)
{
	struct ibv_qp_init_attr attr = {
		.send_cq = cq,
		.recv_cq = cq,
		.cap = { .max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1 },
		.qp_type = IBV_QPT_RC,
	};

	return ibv_create_qp(pd, &attr);
}

static int hold(int count, int ready)
{
	if (!open_first())
		return 2;
	for (int i = 0; i < count; ++i)
		if (!create_qp())
			return 1;
	if (write(ready, "x", 1) != 1)
		return 1;
	for (;;)
		pause();
}

int main(int argc, char **argv)
{
	struct timespec start, end;
	int ready[2];
	char byte;

	if (argc < 2 || pipe(ready))
		return 2;
	pid_t child = fork();
	if (child == 0)
		return hold(atoi(argv[1]), ready[1]);
	if (child < 0) {
		perror("fork");
		return 2;
	}
	close(ready[1]);
	if (read(ready[0], &byte, 1) != 1 || !open_first())
		return 2;
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	clock_gettime(CLOCK_MONOTONIC, &start);
	struct ibv_qp *qp = create_qp();
	clock_gettime(CLOCK_MONOTONIC, &end);
	if (!qp)
		return 1;
	printf("guest_death.next %lld\n", (end.tv_sec - start.tv_sec) * 1000000000LL + end.tv_nsec - start.tv_nsec);
	return 0;
}
