/*
 * Requests to the kernel that libibverbs does not make, by the descriptor that it opened.
 *
 *   requests DEVICE STEP...
 *
 *   rc=N               create N QPs, by libibverbs     mr=N            register N MRs of 4 KiB so
 *   open_qp=N          open N QPs by requests that lie nowhere
 *   rereg=BYTES        re-register the last MR         rewrite=BYTES   the same by write(2)
 *   unread=BYTES       the same by ioctl of a page that is not in memory
 *   written_mr=N:BYTES written_qp=N   register N MRs, create N QPs of rxe's, by write(2)
 *   hidden_mr=N:BYTES  register N MRs by requests with the input behind many attributes
 *   unanswered=BYTES   the same with an answer that can be written nowhere
 *   access=BYTES       the same with another access; 0: the access alone
 *   both=BYTES         the last two MRs, at once       mixed=BYTES     the same, one of them as `unread`
 *   unknown=N:BYTES    register N MRs by mlx5sim's own method
 *   method_mr=N:BYTES  the same by the method that kernels newer than 6.12 have
 *   reversed=N         allocate N PDs, with the request's attributes in another order
 *   wait               print "waiting" and read a line
 *
 * Prints "STEP: MADE of N" and the error's name where it stopped short.
 */
#include "raw_uverbs.h"
#include <infiniband/verbs.h>
#include <pthread.h>
#include <rdma/rdma_user_rxe.h>

enum { most_mrs = 64, buffer_bytes = 8 << 20 };

static struct ibv_context *context;
static struct ibv_pd *pd;
static struct ibv_cq *cq;
static struct ibv_mr *mrs[most_mrs];
static int mr_count;
static char *buffer;
static void *const nowhere = (void *)8;

static int make_qp(void)
{
	struct ibv_qp_init_attr attr = {
		.send_cq = cq,
		.recv_cq = cq,
		.cap = { .max_send_wr = 8, .max_recv_wr = 8, .max_send_sge = 1, .max_recv_sge = 1 },
		.qp_type = IBV_QPT_RC,
	};

	return ibv_create_qp(pd, &attr) ? 0 : -1;
}

static int make_mr(void)
{
	if (mr_count == most_mrs)
		return -1;
	mrs[mr_count] = ibv_reg_mr(pd, buffer, 4096, IBV_ACCESS_LOCAL_WRITE);
	return mrs[mr_count] ? (++mr_count, 0) : -1;
}

static int open_qp(void)
{
	return by_ioctl(context->cmd_fd, IB_USER_VERBS_CMD_OPEN_QP, nowhere, sizeof(struct ib_uverbs_open_qp), buffer,
			sizeof(struct ib_uverbs_create_qp_resp));
}

static int rereg(struct ibv_mr *mr, way *call, int flags, long bytes, void *answer)
{
	/* The kernel takes no bytes at the beginning of a page. */
	char *start = bytes ? buffer : buffer + 8;
	struct ib_uverbs_rereg_mr in = {
		.mr_handle = mr->handle,
		.flags = (__u32)flags,
		.start = (__u64)start,
		.length = (__u64)bytes,
		.hca_va = (__u64)start,
		.pd_handle = pd->handle,
		.access_flags = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ,
	};

	return call(context->cmd_fd, IB_USER_VERBS_CMD_REREG_MR, &in, sizeof in, answer, sizeof(struct ib_uverbs_rereg_mr_resp));
}

static int mr_by(way *call, long bytes)
{
	struct ib_uverbs_reg_mr in = {
		.start = (__u64)buffer,
		.length = (__u64)bytes,
		.hca_va = (__u64)buffer,
		.pd_handle = pd->handle,
		.access_flags = IBV_ACCESS_LOCAL_WRITE,
	};
	struct ib_uverbs_reg_mr_resp out;

	return call(context->cmd_fd, IB_USER_VERBS_CMD_REG_MR, &in, sizeof in, &out, sizeof out);
}

static int by_hidden_input(int fd, unsigned command, void *in, size_t in_bytes, void *out, size_t out_bytes)
{
	struct invocation call = invocation(command, in, in_bytes, out, out_bytes);

	return with_many_attributes(fd, &call, 1);
}

static int written_qp(void)
{
	struct ib_uverbs_create_qp in = {
		.pd_handle = pd->handle,
		.send_cq_handle = cq->handle,
		.recv_cq_handle = cq->handle,
		.max_send_wr = 8,
		.max_recv_wr = 8,
		.max_send_sge = 1,
		.max_recv_sge = 1,
		.qp_type = IB_UVERBS_QPT_RC,
	};
	struct {
		struct ib_uverbs_create_qp_resp core;
		struct rxe_create_qp_resp own;
	} out;

	return by_write(context->cmd_fd, IB_USER_VERBS_CMD_CREATE_QP, &in, sizeof in, &out, sizeof out);
}

static struct ibv_mr *last(int back)
{
	return mrs[mr_count - 1 - back];
}

static long wanted_bytes;
static way *others_way;

static void *in_thread(void *failed)
{
	*(int *)failed = rereg(last(1), others_way, IBV_REREG_MR_CHANGE_TRANSLATION, wanted_bytes, buffer + 4096) ? errno : 0;
	return NULL;
}

/* 0: both; else the error of one of them. */
static int both(long bytes, way *call)
{
	pthread_t other;
	int others = 0, own;

	wanted_bytes = bytes;
	others_way = call;
	pthread_create(&other, NULL, in_thread, &others);
	own = rereg(last(0), by_ioctl, IBV_REREG_MR_CHANGE_TRANSLATION, bytes, buffer) ? errno : 0;
	pthread_join(other, NULL);
	errno = own ? own : others;
	return errno ? -1 : 0;
}

static int unknown(long bytes)
{
	const struct ib_uverbs_attr attrs[] = {
		attribute(0x1000, 0, 0),
		attribute(0x1001, 0, pd->handle),
		attribute(0x1002, 8, (__u64)buffer),
		attribute(0x1003, 8, (__u64)bytes),
	};

	return by_method(context->cmd_fd, UVERBS_OBJECT_MR, 0x1000, attrs, 4);
}

/* UVERBS_METHOD_REG_MR and its attributes' numbers (ib_user_ioctl_cmds.h), which the headers here may be too old for. */
static int method_mr(long bytes)
{
	__u32 keys[2];
	const struct ib_uverbs_attr attrs[] = {
		attribute(0, 0, 0),
		attribute(1, 0, pd->handle),
		attribute(3, 8, (__u64)buffer), /* the address for others */
		attribute(4, 8, (__u64)buffer),
		attribute(5, 8, (__u64)bytes),
		attribute(6, 4, IBV_ACCESS_LOCAL_WRITE),
		attribute(9, 4, (__u64)&keys[0]),
		attribute(10, 4, (__u64)&keys[1]),
	};

	return by_method(context->cmd_fd, UVERBS_OBJECT_MR, UVERBS_METHOD_REG_DMABUF_MR + 1, attrs, 8);
}

static int reversed(void)
{
	struct ib_uverbs_alloc_pd in = { 0 };
	struct invocation call = invocation(IB_USER_VERBS_CMD_ALLOC_PD, &in, sizeof in, buffer, sizeof(struct ib_uverbs_alloc_pd_resp));
	struct ib_uverbs_attr first = call.attrs[0];

	call.attrs[0] = call.attrs[2];
	call.attrs[2] = first;
	return ioctl(context->cmd_fd, RDMA_VERBS_IOCTL, &call);
}

static int once(const char *step, long value, long bytes)
{
	const int translation = IBV_REREG_MR_CHANGE_TRANSLATION, access = IBV_REREG_MR_CHANGE_ACCESS;

	if (!strcmp(step, "rc")) return make_qp();
	if (!strcmp(step, "mr")) return make_mr();
	if (!strcmp(step, "open_qp")) return open_qp();
	if (!strcmp(step, "unknown")) return unknown(bytes);
	if (!strcmp(step, "method_mr")) return method_mr(bytes);
	if (!strcmp(step, "reversed")) return reversed();
	if (!strcmp(step, "written_mr")) return mr_by(by_write, bytes);
	if (!strcmp(step, "hidden_mr")) return mr_by(by_hidden_input, bytes);
	if (!strcmp(step, "written_qp")) return written_qp();
	if (!strcmp(step, "rereg")) return rereg(last(0), by_ioctl, translation, value, buffer);
	if (!strcmp(step, "rewrite")) return rereg(last(0), by_write, translation, value, buffer);
	if (!strcmp(step, "unanswered")) return rereg(last(0), by_ioctl, translation, value, nowhere);
	if (!strcmp(step, "access")) return rereg(last(0), by_ioctl, value ? access | translation : access, value, buffer);
	if (!strcmp(step, "unread")) return rereg(last(0), by_unread, translation, value, buffer);
	return both(value, strcmp(step, "mixed") ? by_ioctl : by_unread);
}

static int run(char *step)
{
	char *text = strchr(step, '='), *second;
	long value, made = 0, wanted;

	if (!text) {
		puts("waiting");
		fflush(stdout);
		return getchar() == EOF ? 0 : 0;
	}
	*text++ = '\0';
	value = strtol(text, &second, 0);
	wanted = strstr("rc mr open_qp unknown method_mr reversed written_mr hidden_mr written_qp", step) ? value : 1;
	errno = 0;
	while (made < wanted && !once(step, value, *second ? atol(second + 1) : 0))
		made++;
	printf("%s: %ld of %ld%s%s\n", step, made, wanted, made < wanted ? " " : "", made < wanted ? strerrorname_np(errno) : "");
	return made < wanted;
}

int main(int argc, char **argv)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	int failed = 0;

	while (list && *list && argc > 1 && strcmp(ibv_get_device_name(*list), argv[1]))
		list++;
	context = argc > 1 && list && *list ? ibv_open_device(*list) : NULL;
	if (!context || !(pd = ibv_alloc_pd(context)) || !(cq = ibv_create_cq(context, 64, NULL, NULL, 0))) {
		perror("requests");
		return 2;
	}
	if (!strncmp(argv[1], "mlx5", 4))
		driver = RDMA_DRIVER_MLX5;
	buffer = aligned_alloc(4096, buffer_bytes);
	memset(buffer, 1, buffer_bytes);
	for (int i = 2; i < argc; i++)
		failed |= run(argv[i]);
	return failed;
}
