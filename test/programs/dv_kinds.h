/*
 * Kinds of objects for verbs_objects.c that libmlx5's own calls make.
 *
 *   dvqp=N dvcq=N[:ENTRIES] dvwq=N   mlx5dv_create_qp, _create_cq, _create_wq
 *   dvdm=N[:BYTES] mkey=N            mlx5dv_alloc_dm, _create_mkey
 *   umem=N[:BYTES] umemx=N[:BYTES]   mlx5dv_devx_umem_reg, _reg_ex
 *   devx=N:OPCODE                    mlx5dv_devx_obj_create of that command
 *
 * With DV_BY_NAME the program is not linked to libmlx5, and a step load=LIBRARY gives it the calls, by dlopen and
 * dlsym.
 */
#include <dlfcn.h>
#include <infiniband/mlx5dv.h>

#ifdef DV_BY_NAME
static void *dv_library;

static void *dv_find(const char *name)
{
	void *function = dv_library ? dlsym(dv_library, name) : NULL;

	if (!function) {
		fprintf(stderr, "no %s\n", name);
		exit(2);
	}
	return function;
}
#define DV(name) ((__typeof__(&name))dv_find(#name))
#else
#define DV(name) name
#endif

static void *make_dv_qp(long unused)
{
	struct ibv_qp_init_attr_ex attr = {
		.send_cq = cq,
		.recv_cq = cq,
		.cap = { .max_send_wr = 8, .max_recv_wr = 8, .max_send_sge = 1, .max_recv_sge = 1 },
		.qp_type = IBV_QPT_RC,
		.comp_mask = IBV_QP_INIT_ATTR_PD,
		.pd = pd,
	};
	struct mlx5dv_qp_init_attr own = { 0 };
	(void)unused;
	return DV(mlx5dv_create_qp)(context, &attr, &own);
}

static void *make_dv_cq(long entries)
{
	struct ibv_cq_init_attr_ex attr = { .cqe = (uint32_t)entries, .wc_flags = IBV_WC_STANDARD_FLAGS };
	struct mlx5dv_cq_init_attr own = { 0 };
	return DV(mlx5dv_create_cq)(context, &attr, &own);
}

static void *make_dv_wq(long work_requests)
{
	struct ibv_wq_init_attr attr = {
		.wq_type = IBV_WQT_RQ,
		.max_wr = (uint32_t)work_requests,
		.max_sge = 1,
		.pd = pd,
		.cq = cq,
	};
	return DV(mlx5dv_create_wq)(context, &attr, NULL);
}

static void *make_dv_dm(long bytes)
{
	struct ibv_alloc_dm_attr attr = { .length = (size_t)bytes };
	struct mlx5dv_alloc_dm_attr own = { .type = MLX5DV_DM_TYPE_MEMIC };
	return DV(mlx5dv_alloc_dm)(context, &attr, &own);
}

static void *make_mkey(long entries)
{
	struct mlx5dv_mkey_init_attr attr = {
		.pd = pd,
		.create_flags = MLX5DV_MKEY_INIT_ATTR_FLAGS_INDIRECT,
		.max_entries = (uint16_t)entries,
	};
	return DV(mlx5dv_create_mkey)(&attr);
}

static void *make_umem(long bytes)
{
	return DV(mlx5dv_devx_umem_reg)(context, buffer, (size_t)bytes, IBV_ACCESS_LOCAL_WRITE);
}

static void *make_umem_ex(long bytes)
{
	struct mlx5dv_devx_umem_in in = {
		.addr = buffer,
		.size = (size_t)bytes,
		.access = IBV_ACCESS_LOCAL_WRITE,
		.pgsz_bitmap = UINT64_MAX & ~(uint64_t)4095,
	};
	return DV(mlx5dv_devx_umem_reg_ex)(context, &in);
}

static void *make_devx(long opcode)
{
	unsigned char in[64] = { (unsigned char)(opcode >> 8), (unsigned char)opcode }, out[64] = { 0 };
	return DV(mlx5dv_devx_obj_create)(context, in, sizeof(in), out, sizeof(out));
}

static int end_mkey(void *object) { return DV(mlx5dv_destroy_mkey)(object); }
static int end_umem(void *object) { return DV(mlx5dv_devx_umem_dereg)(object); }
static int end_devx(void *object) { return DV(mlx5dv_devx_obj_destroy)(object); }

#define DV_POOLS \
	{ .kind = "dvqp", .make = make_dv_qp, .end = end_qp }, \
	{ .kind = "dvcq", .make = make_dv_cq, .end = end_cq, .argument = 16 }, \
	{ .kind = "dvwq", .make = make_dv_wq, .end = end_wq, .argument = 16 }, \
	{ .kind = "dvdm", .make = make_dv_dm, .end = end_dm, .argument = 4096 }, \
	{ .kind = "mkey", .make = make_mkey, .end = end_mkey, .argument = 3 }, \
	{ .kind = "umem", .make = make_umem, .end = end_umem, .argument = 4096 }, \
	{ .kind = "umemx", .make = make_umem_ex, .end = end_umem, .argument = 4096 }, \
	{ .kind = "devx", .make = make_devx, .end = end_devx, .argument = 0x500 },
