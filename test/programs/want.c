/*
 * want N: holds up to N QPs until its input ends. Twenty times a second it gives one in fifty back and creates as many as it
 * lacks, so what it holds follows what it may. Prints "waiting" at first, and at the end "N held".
 */
#include <infiniband/verbs.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { most_qps = 2000 };

static struct ibv_qp *qps[most_qps];

int main(int argc, char **argv)
{
	int wanted = argc == 2 ? atoi(argv[1]) : 0, count = 0, next = 0;
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *context = list && list[0] ? ibv_open_device(list[0]) : NULL;
	struct ibv_pd *pd = context ? ibv_alloc_pd(context) : NULL;
	struct ibv_cq *cq = context ? ibv_create_cq(context, 16, NULL, NULL, 0) : NULL;
	struct pollfd input = { STDIN_FILENO, POLLIN, 0 };

	if (wanted < 0 || wanted > most_qps || !pd || !cq)
		return 2;
	struct ibv_qp_init_attr attr = {
		.send_cq = cq,
		.recv_cq = cq,
		.cap = { .max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1 },
		.qp_type = IBV_QPT_RC,
	};
	puts("waiting");
	fflush(stdout);
	while (poll(&input, 1, 50) == 0) {
		for (int i = (count + 49) / 50; i > 0; i--) {
			next %= count;
			ibv_destroy_qp(qps[next]);
			qps[next++] = qps[--count];
		}
		while (count < wanted && (qps[count] = ibv_create_qp(pd, &attr)))
			count++;
	}
	printf("%d held\n", count);
	while (count > 0)
		ibv_destroy_qp(qps[--count]);
	ibv_destroy_cq(cq);
	ibv_dealloc_pd(pd);
	return ibv_close_device(context) ? 1 : 0;
}
