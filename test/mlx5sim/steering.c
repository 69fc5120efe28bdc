// SPDX-License-Identifier: GPL-2.0
/* What raw packets are steered with: WQs, their indirection tables, flows and counters. */
#include <linux/slab.h>

#include "mlx5sim.h"

struct sim_wq {
	struct ib_wq ib;
	struct ib_umem *umem;
};

struct sim_rwq_ind_table {
	struct ib_rwq_ind_table ib;
};

struct sim_counters {
	struct ib_counters ib;
};

/* A real adapter has receive queues of QPs in the same number space. */
static struct sim_wq *new_wq(struct ib_umem *umem)
{
	u32 number;
	struct sim_wq *wq = sim_new(sizeof(*wq), sim_qps, umem, &number);

	if (IS_ERR(wq))
		return wq;
	wq->umem = umem;
	wq->ib.wq_num = number;
	return wq;
}

static void free_wq(struct sim_wq *wq)
{
	sim_number_free(sim_qps, wq->ib.wq_num);
	ib_umem_release(wq->umem);
	kfree(wq);
}

static struct ib_wq *create_wq(struct ib_pd *pd, struct ib_wq_init_attr *attr, struct ib_udata *udata)
{
	struct mlx5_ib_create_wq_resp response = { .response_length = min(sizeof(response), udata->outlen) };
	struct mlx5_ib_create_wq request;
	struct sim_wq *wq;
	int error = sim_begin(sim_create_wq);

	if (!error)
		error = sim_request(udata, &request, sizeof(request));
	if (!error && (!request.rq_wqe_count || request.rq_wqe_count > pd->device->attrs.max_qp_wr))
		error = -EINVAL;
	if (error)
		return ERR_PTR(error);
	wq = new_wq(ib_umem_get(pd->device, request.buf_addr, (u64)request.rq_wqe_count << (request.rq_wqe_shift & 31),
				IB_ACCESS_LOCAL_WRITE));
	if (IS_ERR(wq))
		return ERR_CAST(wq);
	error = sim_respond(udata, &response, sizeof(response));
	if (!error)
		return &wq->ib;
	free_wq(wq);
	return ERR_PTR(error);
}

static int modify_wq(struct ib_wq *wq, struct ib_wq_attr *attr, u32 mask, struct ib_udata *udata)
{
	int error = sim_begin(sim_modify_wq);

	if (!error && mask & IB_WQ_STATE)
		wq->state = attr->wq_state;
	return error;
}

static int destroy_wq(struct ib_wq *ib, struct ib_udata *udata)
{
	int error = sim_begin(sim_destroy_wq);

	if (!error)
		free_wq(container_of(ib, struct sim_wq, ib));
	return error;
}

static int create_rwq_ind_table(struct ib_rwq_ind_table *table, struct ib_rwq_ind_table_init_attr *attr,
				struct ib_udata *udata)
{
	struct mlx5_ib_create_rwq_ind_tbl_resp response = { .response_length = min(sizeof(response), udata->outlen) };
	int number = sim_begin(sim_create_rwq_ind_table);

	if (!number)
		number = sim_number(sim_rqts);
	if (number < 0)
		return number;
	table->ind_tbl_num = number;
	number = sim_respond(udata, &response, sizeof(response));
	if (number)
		sim_number_free(sim_rqts, table->ind_tbl_num);
	return number;
}

static int destroy_rwq_ind_table(struct ib_rwq_ind_table *table)
{
	int error = sim_begin(sim_destroy_rwq_ind_table);

	if (!error)
		sim_number_free(sim_rqts, table->ind_tbl_num);
	return error;
}

static struct ib_flow *create_flow(struct ib_qp *qp, struct ib_flow_attr *attr, struct ib_udata *udata)
{
	int error = sim_begin(sim_create_flow);
	struct ib_flow *flow;

	if (error)
		return ERR_PTR(error);
	flow = kzalloc(sizeof(*flow), GFP_KERNEL);
	return flow ? flow : ERR_PTR(-ENOMEM);
}

static int destroy_flow(struct ib_flow *flow)
{
	int error = sim_begin(sim_destroy_flow);

	if (!error)
		kfree(flow);
	return error;
}

static int create_counters(struct ib_counters *counters, struct uverbs_attr_bundle *attrs)
{
	return sim_begin(sim_create_counters);
}

static int destroy_counters(struct ib_counters *counters)
{
	return sim_begin(sim_destroy_counters);
}

/* All stay zero, as the core's buffer is. */
static int read_counters(struct ib_counters *counters, struct ib_counters_read_attr *attr,
			 struct uverbs_attr_bundle *attrs)
{
	return sim_begin(sim_read_counters);
}

const struct ib_device_ops sim_steering_ops = {
	.create_wq = create_wq,
	.modify_wq = modify_wq,
	.destroy_wq = destroy_wq,
	.create_rwq_ind_table = create_rwq_ind_table,
	.destroy_rwq_ind_table = destroy_rwq_ind_table,
	.create_flow = create_flow,
	.destroy_flow = destroy_flow,
	.create_counters = create_counters,
	.destroy_counters = destroy_counters,
	.read_counters = read_counters,
	INIT_RDMA_OBJ_SIZE(ib_rwq_ind_table, sim_rwq_ind_table, ib),
	INIT_RDMA_OBJ_SIZE(ib_counters, sim_counters, ib),
};
