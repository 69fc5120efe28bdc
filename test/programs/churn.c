/*
 * churn [-d DEVICE] MOST: creates and destroys QPs at random, MOST of them at a time or as many as it may, until its input
 * ends. Prints "waiting" once it has begun, and at the end how many it created and how often that was refused.
 */
#include <fcntl.h>
#include <infiniband/verbs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { max_qps = 2000 };

static struct ibv_context *open_device(const char *name)
{
	struct ibv_device **list = ibv_get_device_list(NULL);

	for (int i = 0; list && list[i]; i++)
		if (!name || !strcmp(ibv_get_device_name(list[i]), name))
			return ibv_open_device(list[i]);
	return NULL;
}

static int input_ended(void)
{
	char byte;

	return read(STDIN_FILENO, &byte, 1) == 0;
}

int main(int argc, char **argv)
{
	const char *name = argc == 4 && !strcmp(argv[1], "-d") ? argv[2] : NULL;
	int most = argc > 1 ? atoi(argv[argc - 1]) : 0;
	struct ibv_qp *qps[max_qps];
	long made = 0, refused = 0;
	int count = 0;

	if (most < 1 || most > max_qps)
		return 2;
	struct ibv_context *context = open_device(name);
	struct ibv_pd *pd = context ? ibv_alloc_pd(context) : NULL;
	struct ibv_cq *cq = context ? ibv_create_cq(context, 16, NULL, NULL, 0) : NULL;

	if (!pd || !cq)
		return 2;
	struct ibv_qp_init_attr attr = {
		.send_cq = cq,
		.recv_cq = cq,
		.cap = { .max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1 },
		.qp_type = IBV_QPT_RC,
	};
	fcntl(STDIN_FILENO, F_SETFL, O_NONBLOCK);
	srandom((unsigned)getpid());
	puts("waiting");
	fflush(stdout);
	while (!input_ended()) {
		int creates = count < most && random() % 3;
		struct ibv_qp *qp = creates ? ibv_create_qp(pd, &attr) : NULL;

		refused += creates && !qp;
		if (qp) {
			qps[count++] = qp;
			made++;
		} else if (count > 0) {
			int i = (int)(random() % count);

			ibv_destroy_qp(qps[i]);
			qps[i] = qps[--count];
		}
	}
	while (count > 0)
		ibv_destroy_qp(qps[--count]);
	printf("%ld made, %ld refused\n", made, refused);
	ibv_destroy_cq(cq);
	ibv_dealloc_pd(pd);
	return ibv_close_device(context) ? 1 : 0;
}
