/*
 * A verbs program that knows nothing of quotas: it takes QPs through their states and says how far
 * it got.
 *
 *   qp_states STEP...
 *
 *   qp=N          create N RC QPs; the steps below are about the last one
 *   init=PORT     to INIT at that port               reset, error   to that state
 *   rtr           to RTR without an address, which the kernel refuses
 *   flush         post a receive request, go to ERROR and take the completion event
 *   drop          destroy the last QP                close          close the device with all alive
 *   attr          print device attributes by ibv_query_device and ibv_query_device_ex
 *   mr=BYTES      register that much                 wait           print "waiting", read a line
 *
 * Each step prints its name and "ok" or the error's name. The exit status is 0 when all went well, 1
 * when one failed, 2 for wrong usage or no device.
 */
#include <errno.h>
#include <infiniband/verbs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { max_qps = 64 };

static struct ibv_context *context;
static struct ibv_pd *pd;
static struct ibv_comp_channel *channel;
static struct ibv_cq *cq;
static struct ibv_qp *qps[max_qps];
static int qp_count;

static int open_all(const char *name)
{
	struct ibv_device **list = ibv_get_device_list(NULL);

	for (; list && *list; ++list)
		if (!strcmp(ibv_get_device_name(*list), name))
			break;
	context = list && *list ? ibv_open_device(*list) : NULL;
	pd = context ? ibv_alloc_pd(context) : NULL;
	channel = pd ? ibv_create_comp_channel(context) : NULL;
	cq = channel ? ibv_create_cq(context, 16, NULL, channel, 0) : NULL;
	return cq ? 0 : errno;
}

static int create_qps(int count)
{
	struct ibv_qp_init_attr attr = {
		.send_cq = cq,
		.recv_cq = cq,
		.cap = { .max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1 },
		.qp_type = IBV_QPT_RC,
	};

	for (; count > 0 && qp_count < max_qps; --count, ++qp_count)
		if (!(qps[qp_count] = ibv_create_qp(pd, &attr)))
			return errno;
	return 0;
}

static int move(enum ibv_qp_state state, int port)
{
	struct ibv_qp_attr attr = { .qp_state = state, .port_num = (uint8_t)port };
	int mask = IBV_QP_STATE;

	if (state == IBV_QPS_INIT)
		mask |= IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS;
	return ibv_modify_qp(qps[qp_count - 1], &attr, mask);
}

/* A receive request that is flushed completes at once, and the completion channel tells. */
static int flush(void)
{
	struct ibv_recv_wr *bad, request = { .wr_id = 1 };
	struct ibv_cq *told;
	void *unused;
	int error = ibv_req_notify_cq(cq, 0);

	error = error ? error : ibv_post_recv(qps[qp_count - 1], &request, &bad);
	error = error ? error : move(IBV_QPS_ERR, 0);
	if (error)
		return error;
	if (ibv_get_cq_event(channel, &told, &unused))
		return errno;
	ibv_ack_cq_events(told, 1);
	return 0;
}

static int query(void)
{
	struct ibv_device_attr attr;
	struct ibv_device_attr_ex extended;
	int error = ibv_query_device(context, &attr);

	error = error ? error : ibv_query_device_ex(context, NULL, &extended);
	if (!error)
		printf("max_qp %d %d, max_qp_wr %d %d, max_mr_size %llu %llu\n", attr.max_qp, extended.orig_attr.max_qp,
		       attr.max_qp_wr, extended.orig_attr.max_qp_wr, (unsigned long long)attr.max_mr_size,
		       (unsigned long long)extended.orig_attr.max_mr_size);
	return error;
}

static int step(const char *name, long value)
{
	if (!strcmp(name, "qp"))
		return create_qps((int)value);
	if (!strcmp(name, "attr"))
		return query();
	if (!strcmp(name, "mr"))
		return ibv_reg_mr(pd, malloc((size_t)value), (size_t)value, 0) ? 0 : errno;
	if (!strcmp(name, "wait")) {
		puts("waiting");
		return getchar() == EOF ? 0 : 0;
	}
	if (!strcmp(name, "close"))
		return ibv_close_device(context);
	if (!qp_count)
		return -1;
	if (!strcmp(name, "init"))
		return move(IBV_QPS_INIT, (int)value);
	if (!strcmp(name, "reset"))
		return move(IBV_QPS_RESET, 0);
	if (!strcmp(name, "error"))
		return move(IBV_QPS_ERR, 0);
	if (!strcmp(name, "rtr")) /* without an address: the kernel refuses it */
		return move(IBV_QPS_RTR, 0);
	if (!strcmp(name, "flush"))
		return flush();
	if (!strcmp(name, "drop"))
		return ibv_destroy_qp(qps[--qp_count]);
	return -1;
}

int main(int argc, char **argv)
{
	int status = 0;

	setvbuf(stdout, NULL, _IOLBF, 0);
	if (open_all("rxe0")) {
		fprintf(stderr, "qp_states: cannot open rxe0: %s\n", strerror(errno));
		return 2;
	}
	for (int i = 1; i < argc; ++i) {
		char *value = strchr(argv[i], '=');

		if (value)
			*value++ = '\0';
		int error = step(argv[i], value ? atol(value) : 0);
		if (error == -1)
			return 2;
		printf("%s: %s\n", argv[i], error ? strerrorname_np(error) : "ok");
		status |= error != 0;
	}
	return status;
}
