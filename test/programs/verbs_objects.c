/*
 * A verbs program that knows nothing of quotas: it creates and destroys objects as it is told and
 * says how far it got.
 *
 *   verbs_objects [-d DEVICE] STEP...
 *
 *   rc=N uc=N ud=N    create N QPs of that type     pd=N            create N PDs
 *   cq=N[:ENTRIES]    create N CQs                  mr=N[:BYTES]    register N MRs
 *   cqx=N qpx=N       the same by the _ex entries   ctx=N           open N more contexts
 *   srq=N mw=N ah=N   create N SRQs, MWs, AHs       resize=ENTRIES  resize the last CQ
 *   odp=N[:BYTES]     register N on-demand MRs      dm=N[:BYTES]    allocate N pieces of device memory
 *   xrcd=N wq=N counters=N   that many of each; table=N (of the first WQ), flow=N (to the first UD QP)
 *   xrc=N second=N    N XRC QPs that receive, of the first XRCD; N more handles of the first of them
 *   import=N ipd=N    import the device, or the first PD by the last of these devices; theirs=N: PDs by that device
 *   unseen=N          destroy N of the PDs by the kernel's own command, past libibverbs
 *   faulty=N          allocate N PDs by the kernel's own command, each of which it takes back since it cannot answer
 *   busy=N            try N times to destroy the PD in which all else is
 *   rereg=BYTES       re-register the last MR       drop=KIND       destroy all of that kind
 *   close             close the device with all that is alive, and open it again
 *   wait              print "waiting" and read a line of standard input
 *   sleep=SECONDS     thread:STEP,STEP...   these in a thread of their own, until it ends
 *
 * Each creating step prints "KIND: MADE of N" and, when it stopped short, the error's name. The exit
 * status is 0 when every step went as far as asked, 1 when one fell short, 2 for wrong usage or no
 * device.
 */
#include <errno.h>
#include <fcntl.h>
#include <infiniband/verbs.h>
#include <pthread.h>
#include <rdma/ib_user_verbs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { max_objects = 4096 };

struct pool {
	const char *kind;
	void *object[max_objects];
	int count;
	void *(*make)(long argument);
	int (*end)(void *object);
	long argument; /* when none is given */
};

static struct ibv_device *device;
static struct ibv_context *context;
static struct ibv_pd *pd;
static struct ibv_cq *cq;
static char *buffer;
static const size_t buffer_bytes = 64 << 20;

static void *make_qp_of(enum ibv_qp_type type)
{
	struct ibv_qp_init_attr attr = {
		.send_cq = cq,
		.recv_cq = cq,
		.cap = { .max_send_wr = 8, .max_recv_wr = 8, .max_send_sge = 1, .max_recv_sge = 1 },
		.qp_type = type,
	};
	return ibv_create_qp(pd, &attr);
}

static void *make_rc(long unused) { (void)unused; return make_qp_of(IBV_QPT_RC); }
static void *make_uc(long unused) { (void)unused; return make_qp_of(IBV_QPT_UC); }
static void *make_ud(long unused) { (void)unused; return make_qp_of(IBV_QPT_UD); }

static void *make_qp_ex(long unused)
{
	struct ibv_qp_init_attr_ex attr = {
		.send_cq = cq,
		.recv_cq = cq,
		.cap = { .max_send_wr = 8, .max_recv_wr = 8, .max_send_sge = 1, .max_recv_sge = 1 },
		.qp_type = IBV_QPT_RC,
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.pd = pd,
		.send_ops_flags = IBV_QP_EX_WITH_SEND,
	};
	(void)unused;
	return ibv_create_qp_ex(context, &attr);
}

static void *make_cq_ex(long entries)
{
	struct ibv_cq_init_attr_ex attr = { .cqe = (uint32_t)entries, .wc_flags = IBV_WC_STANDARD_FLAGS };
	return ibv_create_cq_ex(context, &attr);
}

static void *make_srq(long work_requests)
{
	struct ibv_srq_init_attr attr = { .attr = { .max_wr = (uint32_t)work_requests, .max_sge = 1 } };
	return ibv_create_srq(pd, &attr);
}

static void *make_ah(long unused)
{
	struct ibv_ah_attr attr = { .is_global = 1, .port_num = 1, .grh = { .hop_limit = 1, .sgid_index = 1 } };
	(void)unused;
	if (ibv_query_gid(context, 1, 1, &attr.grh.dgid))
		return NULL;
	return ibv_create_ah(pd, &attr);
}

static void *make_pd(long unused) { (void)unused; return ibv_alloc_pd(context); }
static void *make_cq(long entries) { return ibv_create_cq(context, (int)entries, NULL, NULL, 0); }
static void *make_mr(long bytes) { return ibv_reg_mr(pd, buffer, (size_t)bytes, IBV_ACCESS_LOCAL_WRITE); }
static void *make_mw(long unused) { (void)unused; return ibv_alloc_mw(pd, IBV_MW_TYPE_2); }
static void *make_odp(long bytes)
{
	return ibv_reg_mr(pd, buffer, (size_t)bytes, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_ON_DEMAND);
}

static void *first_of(const char *kind);

static void *make_dm(long bytes)
{
	struct ibv_alloc_dm_attr attr = { .length = (size_t)bytes };
	return ibv_alloc_dm(context, &attr);
}

static void *make_xrcd(long unused)
{
	struct ibv_xrcd_init_attr attr = {
		.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS,
		.fd = -1,
		.oflags = O_CREAT,
	};
	(void)unused;
	return ibv_open_xrcd(context, &attr);
}

static void *make_xrc(long unused)
{
	struct ibv_qp_init_attr_ex attr = {
		.qp_type = IBV_QPT_XRC_RECV,
		.comp_mask = IBV_QP_INIT_ATTR_XRCD,
		.xrcd = first_of("xrcd"),
	};
	(void)unused;
	return attr.xrcd ? ibv_create_qp_ex(context, &attr) : NULL;
}

static void *make_second(long unused)
{
	struct ibv_qp *first = first_of("xrc");
	struct ibv_qp_open_attr attr = {
		.comp_mask = IBV_QP_OPEN_ATTR_NUM | IBV_QP_OPEN_ATTR_XRCD | IBV_QP_OPEN_ATTR_TYPE,
		.qp_num = first ? first->qp_num : 0,
		.xrcd = first_of("xrcd"),
		.qp_type = IBV_QPT_XRC_RECV,
	};
	(void)unused;
	return first ? ibv_open_qp(context, &attr) : NULL;
}

static void *make_wq(long work_requests)
{
	struct ibv_wq_init_attr attr = {
		.wq_type = IBV_WQT_RQ,
		.max_wr = (uint32_t)work_requests,
		.max_sge = 1,
		.pd = pd,
		.cq = cq,
	};
	return ibv_create_wq(context, &attr);
}

static void *make_counters(long unused)
{
	struct ibv_counters_init_attr attr = { 0 };
	(void)unused;
	return ibv_create_counters(context, &attr);
}

static void *make_table(long unused)
{
	struct ibv_wq *wq = first_of("wq");
	struct ibv_rwq_ind_table_init_attr attr = { .ind_tbl = &wq };
	(void)unused;
	return wq ? ibv_create_rwq_ind_table(context, &attr) : NULL;
}

static void *make_flow(long unused)
{
	struct ibv_flow_attr attr = { .type = IBV_FLOW_ATTR_NORMAL, .size = sizeof(attr), .port = 1 };
	struct ibv_qp *qp = first_of("ud");
	(void)unused;
	return qp ? ibv_create_flow(qp, &attr) : NULL;
}

static void *make_context(long unused) { (void)unused; return ibv_open_device(device); }

static void *last_of(const char *kind);

static void *make_import(long unused)
{
	int fd = dup(context->cmd_fd);
	struct ibv_context *imported = fd < 0 ? NULL : ibv_import_device(fd);
	(void)unused;
	if (fd >= 0 && !imported)
		close(fd);
	return imported;
}

static void *make_imported_pd(long unused)
{
	struct ibv_context *imported = last_of("import");
	(void)unused;
	return imported ? ibv_import_pd(imported, pd->handle) : NULL;
}

static void *make_theirs(long unused)
{
	struct ibv_context *imported = last_of("import");
	(void)unused;
	return imported ? ibv_alloc_pd(imported) : NULL;
}

static int end_qp(void *object) { return ibv_destroy_qp(object); }
static int end_pd(void *object) { return ibv_dealloc_pd(object); }
static int end_cq(void *object) { return ibv_destroy_cq(object); }
static int end_mr(void *object) { return ibv_dereg_mr(object); }
static int end_srq(void *object) { return ibv_destroy_srq(object); }
static int end_mw(void *object) { return ibv_dealloc_mw(object); }
static int end_ah(void *object) { return ibv_destroy_ah(object); }
static int end_dm(void *object) { return ibv_free_dm(object); }
static int end_xrcd(void *object) { return ibv_close_xrcd(object); }
static int end_wq(void *object) { return ibv_destroy_wq(object); }
static int end_table(void *object) { return ibv_destroy_rwq_ind_table(object); }
static int end_flow(void *object) { return ibv_destroy_flow(object); }
static int end_counters(void *object) { return ibv_destroy_counters(object); }
static int end_context(void *object) { return ibv_close_device(object); }

static int end_imported_pd(void *object) { ibv_unimport_pd(object); return 0; }

#ifdef DV_CALLS
#include "dv_kinds.h"
#else
#define DV_POOLS
#endif

static struct pool pools[] = {
	DV_POOLS
	{ .kind = "rc", .make = make_rc, .end = end_qp },
	{ .kind = "uc", .make = make_uc, .end = end_qp },
	{ .kind = "ud", .make = make_ud, .end = end_qp },
	{ .kind = "qpx", .make = make_qp_ex, .end = end_qp },
	{ .kind = "pd", .make = make_pd, .end = end_pd },
	{ .kind = "cq", .make = make_cq, .end = end_cq, .argument = 16 },
	{ .kind = "cqx", .make = make_cq_ex, .end = end_cq, .argument = 16 },
	{ .kind = "mr", .make = make_mr, .end = end_mr, .argument = 4096 },
	{ .kind = "srq", .make = make_srq, .end = end_srq, .argument = 16 },
	{ .kind = "mw", .make = make_mw, .end = end_mw },
	{ .kind = "ah", .make = make_ah, .end = end_ah },
	{ .kind = "odp", .make = make_odp, .end = end_mr, .argument = 4096 },
	{ .kind = "dm", .make = make_dm, .end = end_dm, .argument = 4096 },
	{ .kind = "xrcd", .make = make_xrcd, .end = end_xrcd },
	{ .kind = "second", .make = make_second, .end = end_qp },
	{ .kind = "xrc", .make = make_xrc, .end = end_qp },
	{ .kind = "wq", .make = make_wq, .end = end_wq, .argument = 16 },
	{ .kind = "table", .make = make_table, .end = end_table },
	{ .kind = "flow", .make = make_flow, .end = end_flow },
	{ .kind = "counters", .make = make_counters, .end = end_counters },
	{ .kind = "theirs", .make = make_theirs, .end = end_pd },
	{ .kind = "ipd", .make = make_imported_pd, .end = end_imported_pd },
	{ .kind = "import", .make = make_import, .end = end_context },
	{ .kind = "ctx", .make = make_context, .end = end_context },
};

static struct pool *find_pool(const char *kind)
{
	for (size_t i = 0; i < sizeof(pools) / sizeof(pools[0]); ++i)
		if (!strcmp(pools[i].kind, kind))
			return &pools[i];
	return NULL;
}

static void *first_of(const char *kind)
{
	struct pool *pool = find_pool(kind);

	return pool->count ? pool->object[0] : NULL;
}

static void *last_of(const char *kind)
{
	struct pool *pool = find_pool(kind);

	return pool->count ? pool->object[pool->count - 1] : NULL;
}

static int create(struct pool *pool, int wanted, long argument)
{
	int made = 0;

	for (; made < wanted && pool->count < max_objects; ++made) {
		errno = 0;
		void *object = pool->make(argument);
		if (!object) {
			printf("%s: %d of %d, then %s\n", pool->kind, made, wanted, strerrorname_np(errno));
			return 1;
		}
		pool->object[pool->count++] = object;
	}
	printf("%s: %d of %d\n", pool->kind, made, wanted);
	return 0;
}

static int drop(struct pool *pool)
{
	int dropped = 0;

	for (; pool->count > 0; ++dropped) {
		int error = pool->end(pool->object[pool->count - 1]);
		if (error) {
			printf("drop %s: %d, then %s\n", pool->kind, dropped, strerrorname_np(error));
			return 1;
		}
		--pool->count;
	}
	printf("drop %s: %d\n", pool->kind, dropped);
	return 0;
}

static int report(const char *what, int error)
{
	printf("%s: %s\n", what, error ? strerrorname_np(error) : "ok");
	return error != 0;
}

/* As a program would that has a file of its own for them, or a libibverbs that we have not wrapped. */
static int destroy_unseen(int wanted)
{
	struct pool *pool = find_pool("pd");
	int done = 0;

	for (; done < wanted && pool->count > 0; ++done) {
		struct ibv_pd *pd = pool->object[--pool->count];
		struct {
			struct ib_uverbs_cmd_hdr head;
			struct ib_uverbs_dealloc_pd body;
		} command = {
			.head = { .command = IB_USER_VERBS_CMD_DEALLOC_PD, .in_words = sizeof(command) / 4 },
			.body = { .pd_handle = pd->handle },
		};
		if (write(context->cmd_fd, &command, sizeof(command)) < 0)
			break;
	}
	printf("unseen: %d of %d\n", done, wanted);
	return done < wanted;
}

static int fail_to_answer(int wanted)
{
	int failed = 0;

	for (int i = 0; i < wanted; ++i) {
		struct {
			struct ib_uverbs_cmd_hdr head;
			struct ib_uverbs_alloc_pd body;
		} command = {
			.head = {
				.command = IB_USER_VERBS_CMD_ALLOC_PD,
				.in_words = sizeof(command) / 4,
				.out_words = sizeof(struct ib_uverbs_alloc_pd_resp) / 4,
			},
			.body = { .response = 4096 },
		};
		failed += write(context->cmd_fd, &command, sizeof(command)) < 0 && errno == EFAULT;
	}
	printf("faulty: %d of %d\n", failed, wanted);
	return failed < wanted;
}

static int destroy_busy(int wanted)
{
	int failed = 0;

	for (int i = 0; i < wanted; ++i)
		failed += ibv_dealloc_pd(pd) == EBUSY;
	printf("busy: %d of %d\n", failed, wanted);
	return failed < wanted;
}

static int open_all(void)
{
	context = ibv_open_device(device);
	if (!context)
		return report("open", errno);
	pd = ibv_alloc_pd(context);
	if (!pd)
		return report("first pd", errno);
	cq = ibv_create_cq(context, 64, NULL, NULL, 0);
	if (!cq)
		return report("first cq", errno);
	return 0;
}

static int step(char *text)
{
	char *value = strchr(text, '=');
	struct pool *pool;

	if (value)
		*value++ = '\0';
	if (!strcmp(text, "wait")) {
		puts("waiting");
		return getchar() == EOF ? 0 : 0;
	}
	if (!strcmp(text, "close")) {
		for (size_t i = 0; i < sizeof(pools) / sizeof(pools[0]); ++i)
			pools[i].count = 0;
		ibv_close_device(context);
		return open_all();
	}
	if (!value)
		return 2;
#ifdef DV_BY_NAME
	if (!strcmp(text, "load")) {
		dv_library = dlopen(value, RTLD_NOW);
		return dv_library ? 0 : report(dlerror(), ENOENT);
	}
#endif
	if (!strcmp(text, "sleep"))
		return sleep((unsigned)atoi(value)) != 0;
	if (!strcmp(text, "unseen"))
		return destroy_unseen(atoi(value));
	if (!strcmp(text, "faulty"))
		return fail_to_answer(atoi(value));
	if (!strcmp(text, "busy"))
		return destroy_busy(atoi(value));
	if (!strcmp(text, "drop"))
		return (pool = find_pool(value)) ? drop(pool) : 2;
	if (!strcmp(text, "resize")) {
		struct ibv_cq *last = last_of("cq");

		return last ? report("resize", ibv_resize_cq(last, atoi(value))) : 2;
	}
	if (!strcmp(text, "rereg")) {
		struct ibv_mr *last = last_of("mr");

		if (!last)
			return 2;
		errno = 0;
		int failed = ibv_rereg_mr(last, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, buffer, (size_t)atol(value), 0);
		return report("rereg", failed ? (errno ? errno : EIO) : 0);
	}
	pool = find_pool(text);
	if (!pool)
		return 2;
	char *argument = strchr(value, ':');
	return create(pool, atoi(value), argument ? strtol(argument + 1, NULL, 0) : pool->argument);
}

static int thread_status;

static void *steps_of_thread(void *text)
{
	for (char *rest, *one = strtok_r(text, ",", &rest); one; one = strtok_r(NULL, ",", &rest))
		thread_status |= step(one);
	return NULL;
}

static int in_thread(char *text)
{
	pthread_t thread;

	thread_status = 0;
	if (pthread_create(&thread, NULL, steps_of_thread, text) || pthread_join(thread, NULL))
		return 1;
	return thread_status;
}

static struct ibv_device *find_device(const char *name)
{
	struct ibv_device **list = ibv_get_device_list(NULL);

	for (int i = 0; list && list[i]; ++i)
		if (!name || !strcmp(ibv_get_device_name(list[i]), name))
			return list[i];
	return NULL;
}

int main(int argc, char **argv)
{
	const char *name = NULL;
	int status = 0;
	int first = 1;

	setvbuf(stdout, NULL, _IOLBF, 0);
	if (argc > 2 && !strcmp(argv[1], "-d")) {
		name = argv[2];
		first = 3;
	}
	device = find_device(name);
	if (!device) {
		fprintf(stderr, "verbs_objects: no RDMA device%s%s\n", name ? " named " : "", name ? name : "");
		return 2;
	}
	buffer = aligned_alloc(4096, buffer_bytes);
	if (!buffer || open_all())
		return 1;
	for (int i = first; i < argc; ++i) {
		int result = strncmp(argv[i], "thread:", 7) ? step(argv[i]) : in_thread(argv[i] + 7);
		if (result == 2) {
			fprintf(stderr, "verbs_objects: unknown step '%s'\n", argv[i]);
			return 2;
		}
		status |= result;
	}
	return status;
}
