/*
 * mlx5_calls DEVICE: a program linked to libmlx5 that makes its calls and prints what they answer, one line each, with
 * nothing in it that differs between two runs of the same kind, so that two runs can be compared. It knows nothing of
 * quotas. The exit status is 2 when the device cannot be opened, else 0: what fails is part of the answer.
 */
#include <errno.h>
#include <infiniband/mlx5dv.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct ibv_pd *pd;

static void print_bytes(const char *what, const void *data, size_t bytes)
{
	printf("%s:", what);
	for (size_t i = 0; i < bytes; ++i)
		printf(" %02x", ((const unsigned char *)data)[i]);
	putchar('\n');
}

/* answer: says how a call went, and its errno when it failed */
static void *answer(const char *what, void *object)
{
	printf("%s: %s\n", what, object ? "made" : strerrorname_np(errno));
	return object;
}

/* What the kernel has pinned for this process: `VmPin` counts long-term pins. */
static long pinned_kib(void)
{
	FILE *status = fopen("/proc/self/status", "r");
	char line[128];
	long kib = -1;

	while (status && fgets(line, sizeof(line), status))
		sscanf(line, "VmPin: %ld", &kib);
	if (status)
		fclose(status);
	return kib;
}

static void query(struct ibv_context *context)
{
	struct mlx5dv_context attr = { .comp_mask = (1 << 14) - 1 };
	int error = mlx5dv_query_device(context, &attr);

	printf("mlx5dv_query_device: %d\n", error);
	attr.hca_core_clock = NULL;
	print_bytes("attributes", &attr, sizeof(attr));
}

static void describe_cq(struct ibv_cq *cq)
{
	struct mlx5dv_cq out = { 0 };
	struct mlx5dv_obj object = { .cq = { .in = cq, .out = &out } };
	int error = mlx5dv_init_obj(&object, MLX5DV_OBJ_CQ);

	printf("init_obj of a CQ: %d, %u entries of %u, number %u, buffer %d\n", error, out.cqe_cnt, out.cqe_size, out.cqn,
	       out.buf != NULL);
}

static void describe_qp(struct ibv_qp *qp)
{
	struct mlx5dv_qp out = { .comp_mask = MLX5DV_QP_MASK_UAR_MMAP_OFFSET };
	struct mlx5dv_obj object = { .qp = { .in = qp, .out = &out } };
	int error = mlx5dv_init_obj(&object, MLX5DV_OBJ_QP);

	printf("init_obj of a QP: %d, send %u of %u, receive %u of %u, doorbell of %u, at %d\n", error, out.sq.wqe_cnt,
	       out.sq.stride, out.rq.wqe_cnt, out.rq.stride, out.bf.size, out.dbrec != NULL);
}

static void describe_pd_and_srq(void)
{
	struct ibv_srq_init_attr attr = { .attr = { .max_wr = 16, .max_sge = 1 } };
	struct ibv_srq *srq = answer("ibv_create_srq", ibv_create_srq(pd, &attr));
	struct mlx5dv_srq srq_out = { .comp_mask = MLX5DV_SRQ_MASK_SRQN };
	struct mlx5dv_pd pd_out = { 0 };
	struct mlx5dv_obj object = { .pd = { .in = pd, .out = &pd_out }, .srq = { .in = srq, .out = &srq_out } };

	if (!srq)
		return;
	printf("init_obj of a PD and an SRQ: %d", mlx5dv_init_obj(&object, MLX5DV_OBJ_PD | MLX5DV_OBJ_SRQ));
	printf(", PD %u, SRQ %u, stride %u\n", pd_out.pdn, srq_out.srqn, srq_out.stride);
	printf("ibv_destroy_srq: %d\n", ibv_destroy_srq(srq));
}

static struct ibv_cq *make_cq(struct ibv_context *context)
{
	struct ibv_cq_init_attr_ex attr = { .cqe = 100, .wc_flags = IBV_WC_STANDARD_FLAGS };
	struct mlx5dv_cq_init_attr own = { .comp_mask = MLX5DV_CQ_INIT_ATTR_MASK_CQE_SIZE, .cqe_size = 128 };
	struct ibv_cq_ex *cq = answer("mlx5dv_create_cq", mlx5dv_create_cq(context, &attr, &own));

	own.cqe_size = 33;
	answer("mlx5dv_create_cq with a wrong size", mlx5dv_create_cq(context, &attr, &own));
	return cq ? ibv_cq_ex_to_cq(cq) : NULL;
}

static struct ibv_qp_init_attr_ex qp_attr(struct ibv_cq *cq, enum ibv_qp_type type)
{
	return (struct ibv_qp_init_attr_ex) {
		.send_cq = cq,
		.recv_cq = cq,
		.cap = { .max_send_wr = 10, .max_recv_wr = 10, .max_send_sge = 2, .max_recv_sge = 2 },
		.qp_type = type,
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.pd = pd,
		.send_ops_flags = IBV_QP_EX_WITH_SEND,
	};
}

/* The whole way to RTS of a QP of its own library's making, as a program that knows libmlx5 goes it. */
static void connect_to_itself(struct ibv_qp *qp)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT, .port_num = 1 };
	struct ibv_qp_init_attr init;

	printf("to INIT: %d\n",
	       ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS));
	attr = (struct ibv_qp_attr) {
		.qp_state = IBV_QPS_RTR,
		.path_mtu = IBV_MTU_1024,
		.dest_qp_num = qp->qp_num,
		.max_dest_rd_atomic = 1,
		.ah_attr = { .is_global = 1, .port_num = 1, .grh = { .sgid_index = 1, .hop_limit = 1 } },
	};
	if (ibv_query_gid(qp->context, 1, 1, &attr.ah_attr.grh.dgid))
		return;
	printf("to RTR: %d\n", ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
							       IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
							       IBV_QP_MIN_RNR_TIMER));
	attr.qp_state = IBV_QPS_RTS;
	printf("to RTS: %d\n", ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
							       IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
							       IBV_QP_MAX_QP_RD_ATOMIC));
	printf("query: %d", ibv_query_qp(qp, &attr, IBV_QP_STATE, &init));
	printf(", state %d, MTU %d, to itself %d\n", attr.qp_state, attr.path_mtu, attr.dest_qp_num == qp->qp_num);
	attr.qp_state = IBV_QPS_RTR;
	printf("from RTS to RTR: %d\n", ibv_modify_qp(qp, &attr, IBV_QP_STATE));
}

static void make_qps(struct ibv_context *context, struct ibv_cq *cq)
{
	struct ibv_qp_init_attr_ex attr = qp_attr(cq, IBV_QPT_RC);
	struct mlx5dv_qp_init_attr own = {
		.comp_mask = MLX5DV_QP_INIT_ATTR_MASK_QP_CREATE_FLAGS,
		.create_flags = MLX5DV_QP_CREATE_DISABLE_SCATTER_TO_CQE,
	};
	struct ibv_qp *qp = answer("mlx5dv_create_qp", mlx5dv_create_qp(context, &attr, &own));

	if (qp) {
		describe_qp(qp);
		printf("mlx5dv_qp_ex_from_ibv_qp_ex: %d\n", mlx5dv_qp_ex_from_ibv_qp_ex(ibv_qp_to_qp_ex(qp)) != NULL);
		connect_to_itself(qp);
		printf("ibv_destroy_qp: %d\n", ibv_destroy_qp(qp));
	}
	attr = qp_attr(cq, IBV_QPT_DRIVER);
	attr.cap.max_recv_wr = attr.cap.max_recv_sge = 0;
	own = (struct mlx5dv_qp_init_attr) {
		.comp_mask = MLX5DV_QP_INIT_ATTR_MASK_DC,
		.dc_init_attr = { .dc_type = MLX5DV_DCTYPE_DCI },
	};
	qp = answer("mlx5dv_create_qp of a DCI", mlx5dv_create_qp(context, &attr, &own));
	if (qp)
		printf("ibv_destroy_qp: %d\n", ibv_destroy_qp(qp));
	attr = qp_attr(cq, IBV_QPT_UC);
	attr.cap.max_send_wr = 1 << 20;
	answer("mlx5dv_create_qp that is too large", mlx5dv_create_qp(context, &attr, NULL));
}

static void make_dm(struct ibv_context *context)
{
	struct ibv_alloc_dm_attr attr = { .length = 8192 };
	struct mlx5dv_alloc_dm_attr own = { .type = MLX5DV_DM_TYPE_MEMIC };
	struct ibv_dm *dm = answer("mlx5dv_alloc_dm", mlx5dv_alloc_dm(context, &attr, &own));
	char text[8] = "written", back[8] = "";

	if (!dm)
		return;
	printf("written and read: %d", ibv_memcpy_to_dm(dm, 4096, text, sizeof(text)));
	printf(" %d %s\n", ibv_memcpy_from_dm(back, dm, 4096, sizeof(back)), back);
	struct ibv_mr *mr = answer("ibv_reg_dm_mr", ibv_reg_dm_mr(pd, dm, 0, 4096, IBV_ACCESS_ZERO_BASED));
	if (mr)
		printf("ibv_dereg_mr: %d\n", ibv_dereg_mr(mr));
	printf("ibv_free_dm: %d\n", ibv_free_dm(dm));
}

/* DEVX: `opcode` begins a command, an answer's third word is the object's number, all big-endian. */
static struct mlx5dv_devx_obj *create_by_opcode(struct ibv_context *context, unsigned opcode, uint32_t *number)
{
	unsigned char in[64] = { (unsigned char)(opcode >> 8), (unsigned char)opcode }, out[64] = { 0 };
	struct mlx5dv_devx_obj *object = mlx5dv_devx_obj_create(context, in, sizeof(in), out, sizeof(out));

	*number = (uint32_t)out[9] << 16 | (uint32_t)out[10] << 8 | out[11];
	return object;
}

static void make_devx(struct ibv_context *context)
{
	static const unsigned opcodes[] = { 0x200 /* MKEY */, 0x400 /* CQ */, 0x500 /* QP */, 0x904 /* SQ */, 0x908 /* RQ */,
					    0x90c /* RMP */, 0x912 /* TIS */, 0xa00 /* any */, 0xfff /* none */ };
	unsigned char in[64] = { 0x05, 0x0b /* QUERY_QP */ }, out[64];

	for (size_t i = 0; i < sizeof(opcodes) / sizeof(opcodes[0]); ++i) {
		uint32_t number;
		struct mlx5dv_devx_obj *object = answer("mlx5dv_devx_obj_create", create_by_opcode(context, opcodes[i], &number));

		if (!object)
			continue;
		printf("of %#x: number %u, ", opcodes[i], number);
		printf("query %d, ", mlx5dv_devx_obj_query(object, in, sizeof(in), out, sizeof(out)));
		printf("modify %d, ", mlx5dv_devx_obj_modify(object, in, sizeof(in), out, sizeof(out)));
		printf("destroy %d\n", mlx5dv_devx_obj_destroy(object));
	}
}

static void pin_memory(struct ibv_context *context)
{
	enum { bytes = 1 << 20 };
	void *memory = aligned_alloc(4096, bytes);
	struct mlx5dv_devx_umem *umem =
		answer("mlx5dv_devx_umem_reg", mlx5dv_devx_umem_reg(context, memory, bytes, IBV_ACCESS_LOCAL_WRITE));

	if (umem) {
		printf("number %u, pinned %ld KiB\n", umem->umem_id, pinned_kib());
		printf("mlx5dv_devx_umem_dereg: %d", mlx5dv_devx_umem_dereg(umem));
		printf(", pinned %ld KiB\n", pinned_kib());
	}
	answer("mlx5dv_devx_umem_reg of nothing", mlx5dv_devx_umem_reg(context, NULL, bytes, IBV_ACCESS_LOCAL_WRITE));
	free(memory);
}

static void make_mkey(void)
{
	struct mlx5dv_mkey_init_attr attr = {
		.pd = pd,
		.create_flags = MLX5DV_MKEY_INIT_ATTR_FLAGS_INDIRECT,
		.max_entries = 3,
	};
	struct mlx5dv_mkey *mkey = answer("mlx5dv_create_mkey", mlx5dv_create_mkey(&attr));

	if (!mkey)
		return;
	printf("%u entries, key %#x\n", attr.max_entries, mkey->lkey);
	printf("mlx5dv_destroy_mkey: %d\n", mlx5dv_destroy_mkey(mkey));
}

static void make_wq(struct ibv_context *context, struct ibv_cq *cq)
{
	struct ibv_wq_init_attr attr = { .wq_type = IBV_WQT_RQ, .max_wr = 10, .max_sge = 1, .pd = pd, .cq = cq };
	struct ibv_wq *wq = answer("mlx5dv_create_wq", mlx5dv_create_wq(context, &attr, NULL));

	if (wq)
		printf("ibv_destroy_wq: %d\n", ibv_destroy_wq(wq));
}

/* A second handle of the device and of the PD, as another process gets it by a socket. */
static void import(struct ibv_context *context)
{
	struct ibv_context *second = answer("ibv_import_device", ibv_import_device(dup(context->cmd_fd)));
	struct ibv_pd *again = second ? answer("ibv_import_pd", ibv_import_pd(second, pd->handle)) : NULL;

	if (again)
		ibv_unimport_pd(again);
	if (second)
		printf("ibv_close_device of the second: %d\n", ibv_close_device(second));
}

static struct ibv_context *open_device(const char *name)
{
	struct mlx5dv_context_attr attr = { .flags = MLX5DV_CONTEXT_FLAGS_DEVX };
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *context = NULL;

	for (int i = 0; list && list[i]; ++i) {
		printf("%s: mlx5dv_is_supported %d\n", ibv_get_device_name(list[i]), mlx5dv_is_supported(list[i]));
		if (!strcmp(ibv_get_device_name(list[i]), name))
			context = answer("mlx5dv_open_device", mlx5dv_open_device(list[i], &attr));
		else
			answer("mlx5dv_open_device of another's device", mlx5dv_open_device(list[i], &attr));
	}
	return context;
}

int main(int argc, char **argv)
{
	struct ibv_context *context = argc == 2 ? open_device(argv[1]) : NULL;
	struct ibv_cq *cq;

	setvbuf(stdout, NULL, _IOLBF, 0);
	if (!context)
		return 2;
	query(context);
	pd = answer("ibv_alloc_pd", ibv_alloc_pd(context));
	cq = make_cq(context);
	if (!pd || !cq)
		return 0;
	describe_cq(cq);
	make_qps(context, cq);
	describe_pd_and_srq();
	make_dm(context);
	make_wq(context, cq);
	make_mkey();
	make_devx(context);
	pin_memory(context);
	import(context);
	printf("ibv_destroy_cq: %d\n", ibv_destroy_cq(cq));
	printf("ibv_dealloc_pd: %d\n", ibv_dealloc_pd(pd));
	printf("ibv_close_device: %d\n", ibv_close_device(context));
	return 0;
}
