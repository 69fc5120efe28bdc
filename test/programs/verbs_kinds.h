/*
 * Kinds of objects for verbs_objects.c: how they are made and destroyed by libibverbs, in what is open, and what there is of them.
 */
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

static void *first_of(const char *kind);
static void *last_of(const char *kind);

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
