/*
 * verbs_victim [--pause US] KIND=SAMPLES[xGROUP]...: how long things take one after the other on the first device, as "KIND.p50 NS",
 * "KIND.p99 NS" and "KIND.mean NS". A sample is the mean of a group. A verbs program that knows nothing of quotas.
 *
 *   pingpong   a message of 64 bytes to another QP of this process and one back; completions by events
 *   bandwidth  eight RDMA writes of 64 KiB, of which the last one's completion is waited for; prints "bandwidth.rate",
 *              bytes in a second, too
 *   qp         creating an RC QP
 *   mr         registering 64 KiB
 *   open       opening the device
 *
 * What was created is destroyed before the next sample, which is not in these times. With --pause the program then sleeps, US
 * on average and never as long as before, so that samples meet others at any point of what these do.
 */
#include <infiniband/verbs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum { message_bytes = 64, write_bytes = 64 << 10, writes = 8, depth = 16, gid_index = 1 };

/* One end of a connection in this process. */
struct end {
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
};

static struct ibv_device *device;
static struct ibv_context *context;
static struct ibv_pd *pd;
static struct ibv_mr *mr;
static struct end ends[2];
static char *memory;
static unsigned pause_us;

static void fail(const char *what)
{
	perror(what);
	exit(1);
}

static unsigned long long now_ns(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return time.tv_sec * 1000000000ULL + time.tv_nsec;
}

static struct ibv_qp *create_qp(struct ibv_cq *cq)
{
	struct ibv_qp_init_attr attr = {
		.send_cq = cq,
		.recv_cq = cq,
		.cap = { .max_send_wr = depth, .max_recv_wr = depth, .max_send_sge = 1, .max_recv_sge = 1 },
		.qp_type = IBV_QPT_RC,
	};

	return ibv_create_qp(pd, &attr);
}

static void open_end(struct end *end)
{
	end->channel = ibv_create_comp_channel(context);
	end->cq = end->channel ? ibv_create_cq(context, 2 * depth, NULL, end->channel, 0) : NULL;
	end->qp = end->cq && !ibv_req_notify_cq(end->cq, 0) ? create_qp(end->cq) : NULL;
	if (!end->qp)
		fail("a queue pair");
}

static void connect_end(struct ibv_qp *qp, unsigned peer)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT,
		.port_num = 1,
		.qp_access_flags = IBV_ACCESS_REMOTE_WRITE,
		.path_mtu = IBV_MTU_1024,
		.dest_qp_num = peer,
		.max_dest_rd_atomic = 1,
		.max_rd_atomic = 1,
		.min_rnr_timer = 12,
		.timeout = 18,
		.retry_cnt = 7,
		.rnr_retry = 7,
		.ah_attr = { .is_global = 1, .grh = { .sgid_index = gid_index, .hop_limit = 1 }, .port_num = 1 },
	};
	int failed = ibv_query_gid(context, 1, gid_index, &attr.ah_attr.grh.dgid);

	failed = failed || ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
	attr.qp_state = IBV_QPS_RTR;
	failed = failed || ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
						    IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
	attr.qp_state = IBV_QPS_RTS;
	failed = failed || ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
						    IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC);
	if (failed)
		fail("connecting");
}

static void connect_both(void)
{
	if (ends[0].qp)
		return;
	mr = ibv_reg_mr(pd, memory, 2 * write_bytes, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	if (!mr)
		fail("ibv_reg_mr");
	for (int i = 0; i < 2; ++i)
		open_end(&ends[i]);
	for (int i = 0; i < 2; ++i)
		connect_end(ends[i].qp, ends[!i].qp->qp_num);
}

static void post_receive(struct end *end)
{
	struct ibv_sge piece = { .addr = (uintptr_t)memory, .length = message_bytes, .lkey = mr->lkey };
	struct ibv_recv_wr request = { .sg_list = &piece, .num_sge = 1 }, *bad;

	if (ibv_post_recv(end->qp, &request, &bad))
		fail("ibv_post_recv");
}

static void post(struct end *end, enum ibv_wr_opcode opcode, unsigned bytes, int signaled)
{
	struct ibv_sge piece = { .addr = (uintptr_t)memory, .length = bytes, .lkey = mr->lkey };
	struct ibv_send_wr request = {
		.sg_list = &piece,
		.num_sge = 1,
		.opcode = opcode,
		.send_flags = signaled ? IBV_SEND_SIGNALED : 0,
		.wr.rdma = { .remote_addr = (uintptr_t)memory + write_bytes, .rkey = mr->rkey },
	}, *bad;

	if (ibv_post_send(end->qp, &request, &bad))
		fail("ibv_post_send");
}

/* Sleeps until the CQ has as many completions more. */
static void await(struct end *end, int completions)
{
	while (completions > 0) {
		struct ibv_wc done;
		struct ibv_cq *cq;
		void *unused;
		int found = ibv_poll_cq(end->cq, 1, &done);

		if (found < 0 || (found > 0 && done.status != IBV_WC_SUCCESS))
			fail("a work request");
		completions -= found;
		if (found || completions == 0)
			continue;
		if (ibv_get_cq_event(end->channel, &cq, &unused) || ibv_req_notify_cq(cq, 0))
			fail("ibv_get_cq_event");
		ibv_ack_cq_events(cq, 1);
	}
}

static unsigned long long pingpong(void)
{
	unsigned long long start;

	post_receive(&ends[0]);
	post_receive(&ends[1]);
	start = now_ns();
	post(&ends[0], IBV_WR_SEND, message_bytes, 1);
	await(&ends[1], 1);
	post(&ends[1], IBV_WR_SEND, message_bytes, 1);
	await(&ends[0], 2); /* sent, and received */
	start = now_ns() - start;
	await(&ends[1], 1);
	return start;
}

static unsigned long long bandwidth(void)
{
	unsigned long long start = now_ns();

	for (int i = 1; i <= writes; ++i)
		post(&ends[0], IBV_WR_RDMA_WRITE, write_bytes, i == writes);
	await(&ends[0], 1);
	return now_ns() - start;
}

static unsigned long long qp(void)
{
	unsigned long long start = now_ns(), end;
	struct ibv_qp *made = create_qp(ends[0].cq);

	end = now_ns();
	if (!made || ibv_destroy_qp(made))
		fail("ibv_create_qp");
	return end - start;
}

static unsigned long long register_memory(void)
{
	unsigned long long start = now_ns(), end;
	struct ibv_mr *made = ibv_reg_mr(pd, memory, write_bytes, IBV_ACCESS_LOCAL_WRITE);

	end = now_ns();
	if (!made || ibv_dereg_mr(made))
		fail("ibv_reg_mr");
	return end - start;
}

static unsigned long long open_device(void)
{
	unsigned long long start = now_ns(), end;
	struct ibv_context *opened = ibv_open_device(device);

	end = now_ns();
	if (!opened || ibv_close_device(opened))
		fail("ibv_open_device");
	return end - start;
}

static const struct {
	const char *name;
	void (*prepare)(void);
	unsigned long long (*sample)(void);
} kinds[] = {
	{ "pingpong", connect_both, pingpong },
	{ "bandwidth", connect_both, bandwidth },
	{ "qp", NULL, qp },
	{ "mr", NULL, register_memory },
	{ "open", NULL, open_device },
};

static int ascending(const void *left, const void *right)
{
	unsigned long long a = *(const unsigned long long *)left, b = *(const unsigned long long *)right;

	return (a > b) - (a < b);
}

/* The pauses have the same lengths in each run. */
static unsigned long long sample(size_t kind, unsigned group)
{
	static unsigned state = 1;
	unsigned long long ns = 0;

	for (unsigned i = 0; i < group; ++i)
		ns += kinds[kind].sample();
	state = state * 1103515245 + 12345;
	if (pause_us)
		usleep((state >> 16) % (2 * pause_us));
	return ns / group;
}

/* The first samples find less in caches than later ones: they are not counted. */
static void measure(size_t kind, size_t samples, unsigned group)
{
	unsigned long long *ns = calloc(samples, sizeof(*ns)), sum = 0;

	if (!ns || samples == 0 || group == 0)
		fail("samples");
	if (kinds[kind].prepare)
		kinds[kind].prepare();
	for (size_t i = 0; i < samples / 8; ++i)
		sample(kind, group);
	for (size_t i = 0; i < samples; ++i)
		sum += ns[i] = sample(kind, group);
	qsort(ns, samples, sizeof(*ns), ascending);
	printf("%s.p50 %llu\n%s.p99 %llu\n%s.mean %llu\n", kinds[kind].name, ns[samples / 2], kinds[kind].name,
	       ns[(samples * 99 - 1) / 100], kinds[kind].name, sum / samples);
	if (kinds[kind].sample == bandwidth)
		printf("%s.rate %.0f\n", kinds[kind].name, (double)samples * writes * write_bytes * 1e9 / sum);
	free(ns);
}

/* WORD is KIND=SAMPLES or KIND=SAMPLESxGROUP. */
static void measure_named(const char *word)
{
	for (size_t kind = 0; kind < sizeof(kinds) / sizeof(kinds[0]); ++kind) {
		size_t length = strlen(kinds[kind].name);
		char *rest;

		if (strncmp(word, kinds[kind].name, length) || word[length] != '=')
			continue;
		size_t samples = strtoul(word + length + 1, &rest, 10);
		measure(kind, samples, *rest == 'x' ? strtoul(rest + 1, NULL, 10) : 1);
	}
}

int main(int argc, char **argv)
{
	struct ibv_device **list = ibv_get_device_list(NULL);

	device = list ? list[0] : NULL;
	context = device ? ibv_open_device(device) : NULL;
	pd = context ? ibv_alloc_pd(context) : NULL;
	ends[0].cq = pd ? ibv_create_cq(context, depth, NULL, NULL, 0) : NULL;
	memory = mmap(NULL, 2 * write_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	if (!ends[0].cq || memory == MAP_FAILED)
		fail("the device");
	for (int i = 1; i < argc; ++i)
		if (!strcmp(argv[i], "--pause") && i + 1 < argc)
			pause_us = atoi(argv[++i]);
		else
			measure_named(argv[i]);
	return 0;
}
