/*
 * replugged DEVICE: creates four QPs and an MR, says "made, waiting", waits for a line on standard input, in which time the device is removed
 * and comes back, and then says how many QPs of four it can create on the device that came back. It destroys and closes nothing.
 * With "destroy" as a second argument it destroys its first QP after the device has come back.
 */
#include <infiniband/verbs.h>
#include <stdio.h>
#include <string.h>

enum { wanted = 4 };

static struct ibv_context *open_named(const char *name)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *context = NULL;

	for (struct ibv_device **at = list; at && *at; ++at)
		if (!context && strcmp(ibv_get_device_name(*at), name) == 0)
			context = ibv_open_device(*at);
	return context;
}

static int create_qps(struct ibv_context *context, struct ibv_qp **qps)
{
	struct ibv_pd *pd = ibv_alloc_pd(context);
	struct ibv_cq *cq = pd ? ibv_create_cq(context, 16, NULL, NULL, 0) : NULL;
	struct ibv_qp_init_attr attributes = {
		.send_cq = cq, .recv_cq = cq, .cap = {1, 1, 1, 1, 0}, .qp_type = IBV_QPT_RC};
	int made = 0;

	while (cq && made < wanted && (qps[made] = ibv_create_qp(pd, &attributes)))
		++made;
	return made;
}

int main(int argc, char **argv)
{
	struct ibv_qp *qps[wanted];
	struct ibv_context *context = argc > 1 ? open_named(argv[1]) : NULL;
	char line[16];

	if (!context || create_qps(context, qps) != wanted)
		return 2;
	puts("made, waiting");
	fflush(stdout);
	if (!fgets(line, sizeof line, stdin))
		return 2;
	if (argc > 2)
		printf("destroyed: %d\n", ibv_destroy_qp(qps[0]));
	context = open_named(argv[1]);
	printf("on the device that came back: %d, waiting\n", context ? create_qps(context, qps) : -1);
	fflush(stdout);
	return fgets(line, sizeof line, stdin) ? 0 : 2;
}
