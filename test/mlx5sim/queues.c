// SPDX-License-Identifier: GPL-2.0
/* CQs, QPs, SRQs and XRCDs: pinned buffers with a number; nothing ever moves in them. */
#include <linux/log2.h>
#include <linux/uaccess.h>

#include "mlx5sim.h"

enum { send_block_bytes = 64, least_srq_stride = 32, srq_header_bytes = 16, scatter_entry_bytes = 16,
       opcode_resize = 5 };

struct sim_cq {
	struct ib_cq ib;
	struct ib_umem *umem;
	u32 number;
	u32 entry_bytes;
	u32 consumed; /* the library's consumer index, which only resizing moves here */
};

struct sim_qp {
	struct ib_qp ib;
	struct ib_umem *umem;
	struct ib_qp_attr attr;
	struct ib_qp_init_attr init;
};

struct sim_srq {
	struct ib_srq ib;
	struct ib_umem *umem;
	struct ib_srq_attr attr;
	u32 number;
};

struct sim_xrcd {
	struct ib_xrcd ib;
	u32 number;
};

/* pin_queue: NULL for a queue without a buffer */
static struct ib_umem *pin_queue(struct ib_device *device, u64 address, u64 bytes)
{
	return bytes ? ib_umem_get(device, address, bytes, IB_ACCESS_LOCAL_WRITE) : NULL;
}

/* number_queue: numbers an object that owns `umem`, which is released on failure. */
static int number_queue(struct ib_umem *umem, enum sim_kind kind)
{
	int number;

	if (IS_ERR(umem))
		return PTR_ERR(umem);
	number = sim_number(kind);
	if (number < 0)
		ib_umem_release(umem);
	return number;
}

static void free_queue(struct ib_umem *umem, enum sim_kind kind, u32 number)
{
	sim_number_free(kind, number);
	ib_umem_release(umem);
}

/* --- CQ --- */

static int create_cq(struct ib_cq *ib, const struct ib_cq_init_attr *attr, struct ib_udata *udata)
{
	struct sim_cq *cq = container_of(ib, struct sim_cq, ib);
	struct mlx5_ib_create_cq_resp response = {};
	struct mlx5_ib_create_cq request;
	u32 entries = roundup_pow_of_two(attr->cqe + 1);
	int number = sim_begin(sim_create_cq);

	if (!number)
		number = sim_request(udata, &request, sizeof(request));
	if (number)
		return number;
	if (attr->cqe > ib->device->attrs.max_cqe || (request.cqe_size != 64 && request.cqe_size != 128))
		return -EINVAL;
	cq->umem = pin_queue(ib->device, request.buf_addr, (u64)entries * request.cqe_size);
	number = number_queue(cq->umem, sim_cqs);
	if (number < 0)
		return number;
	cq->number = number;
	cq->entry_bytes = request.cqe_size;
	ib->cqe = entries - 1;
	response.cqn = number;
	number = sim_respond(udata, &response, sizeof(response));
	if (number)
		free_queue(cq->umem, sim_cqs, cq->number);
	return number;
}

/* An adapter ends the old buffer with an entry that says so, and the library copies until it finds that entry. */
static int end_old_buffer(struct sim_cq *cq)
{
	u32 entries = cq->ib.cqe + 1;
	u8 end = opcode_resize << 4 | !!(cq->consumed & entries);
	u64 entry = cq->umem->address + (u64)(cq->consumed & (entries - 1)) * cq->entry_bytes;

	++cq->consumed;
	return copy_to_user(u64_to_user_ptr(entry + cq->entry_bytes - 1), &end, 1) ? -EFAULT : 0;
}

static int resize_cq(struct ib_cq *ib, int entries, struct ib_udata *udata)
{
	struct sim_cq *cq = container_of(ib, struct sim_cq, ib);
	struct mlx5_ib_resize_cq request;
	struct ib_umem *umem;
	int error = sim_begin(sim_resize_cq);

	if (!error)
		error = sim_request(udata, &request, sizeof(request));
	if (error)
		return error;
	if (entries < 1 || entries > ib->device->attrs.max_cqe)
		return -EINVAL;
	entries = roundup_pow_of_two(entries + 1);
	if (entries == ib->cqe + 1)
		return 0;
	umem = pin_queue(ib->device, request.buf_addr, (u64)entries * cq->entry_bytes);
	error = PTR_ERR_OR_ZERO(umem);
	if (error)
		return error;
	error = end_old_buffer(cq);
	if (error) {
		ib_umem_release(umem);
		return error;
	}
	ib_umem_release(cq->umem);
	cq->umem = umem;
	ib->cqe = entries - 1;
	return 0;
}

static int modify_cq(struct ib_cq *ib, u16 count, u16 period)
{
	return sim_begin(sim_modify_cq);
}

static int destroy_cq(struct ib_cq *ib, struct ib_udata *udata)
{
	struct sim_cq *cq = container_of(ib, struct sim_cq, ib);
	int error = sim_begin(sim_destroy_cq);

	if (!error)
		free_queue(cq->umem, sim_cqs, cq->number);
	return error;
}

/* --- QP --- */

static u64 qp_bytes(const struct mlx5_ib_create_qp *request)
{
	return ((u64)request->rq_wqe_count << (request->rq_wqe_shift & 31)) + (u64)request->sq_wqe_count * send_block_bytes;
}

/* A QP over an indirection table has no buffer, and its request is another structure; one that receives for XRC has
 * neither. */
static int qp_buffer(struct ib_qp *ib, struct ib_qp_init_attr *attr, struct ib_udata *udata, struct ib_umem **umem)
{
	struct mlx5_ib_create_qp request;
	int error;

	*umem = NULL;
	if (attr->rwq_ind_tbl || attr->qp_type == IB_QPT_XRC_TGT)
		return 0;
	error = sim_request(udata, &request, sizeof(request));
	if (error)
		return error;
	if (request.sq_wqe_count > ib->device->attrs.max_qp_wr || request.rq_wqe_count > ib->device->attrs.max_qp_wr)
		return -EINVAL;
	*umem = pin_queue(ib->device, request.buf_addr, qp_bytes(&request));
	return PTR_ERR_OR_ZERO(*umem);
}

static int create_qp(struct ib_qp *ib, struct ib_qp_init_attr *attr, struct ib_udata *udata)
{
	struct sim_qp *qp = container_of(ib, struct sim_qp, ib);
	struct mlx5_ib_create_qp_resp response = {};
	int number = sim_begin(sim_create_qp);

	if (!number)
		number = qp_buffer(ib, attr, udata, &qp->umem);
	if (number)
		return number;
	number = number_queue(qp->umem, sim_qps);
	if (number < 0)
		return number;
	ib->qp_num = number;
	qp->init = *attr;
	qp->attr.qp_state = IB_QPS_RESET;
	number = udata ? sim_respond(udata, &response, sizeof(response)) : 0;
	if (number)
		free_queue(qp->umem, sim_qps, ib->qp_num);
	return number;
}

static void keep(struct ib_qp_attr *kept, const struct ib_qp_attr *attr, int mask)
{
#define KEEP(bit, member) (mask & (bit) ? (void)(kept->member = attr->member) : (void)0)
	KEEP(IB_QP_STATE, qp_state);
	KEEP(IB_QP_ACCESS_FLAGS, qp_access_flags);
	KEEP(IB_QP_PKEY_INDEX, pkey_index);
	KEEP(IB_QP_PORT, port_num);
	KEEP(IB_QP_QKEY, qkey);
	KEEP(IB_QP_PATH_MTU, path_mtu);
	KEEP(IB_QP_TIMEOUT, timeout);
	KEEP(IB_QP_RETRY_CNT, retry_cnt);
	KEEP(IB_QP_RNR_RETRY, rnr_retry);
	KEEP(IB_QP_MIN_RNR_TIMER, min_rnr_timer);
	KEEP(IB_QP_RQ_PSN, rq_psn);
	KEEP(IB_QP_SQ_PSN, sq_psn);
	KEEP(IB_QP_DEST_QPN, dest_qp_num);
	KEEP(IB_QP_MAX_QP_RD_ATOMIC, max_rd_atomic);
	KEEP(IB_QP_MAX_DEST_RD_ATOMIC, max_dest_rd_atomic);
	KEEP(IB_QP_AV, ah_attr);
#undef KEEP
	/* Its reference is the core's. */
	kept->ah_attr.grh.sgid_attr = NULL;
}

static int modify_qp(struct ib_qp *ib, struct ib_qp_attr *attr, int mask, struct ib_udata *udata)
{
	struct sim_qp *qp = container_of(ib, struct sim_qp, ib);
	struct mlx5_ib_modify_qp_resp response = { .response_length = min(sizeof(response), udata->outlen) };
	enum ib_qp_state from = mask & IB_QP_CUR_STATE ? attr->cur_qp_state : qp->attr.qp_state;
	enum ib_qp_state to = mask & IB_QP_STATE ? attr->qp_state : from;
	int error = sim_begin(sim_modify_qp);

	if (error)
		return error;
	/* A driver's own type, as DC, has transitions of its own. */
	if (ib->qp_type != IB_QPT_DRIVER && !ib_modify_qp_is_ok(from, to, ib->qp_type, mask))
		return -EINVAL;
	keep(&qp->attr, attr, mask);
	response.dctn = ib->qp_num;
	return sim_respond(udata, &response, sizeof(response));
}

static int query_qp(struct ib_qp *ib, struct ib_qp_attr *attr, int mask, struct ib_qp_init_attr *init)
{
	struct sim_qp *qp = container_of(ib, struct sim_qp, ib);
	int error = sim_begin(sim_query_qp);

	if (error)
		return error;
	*attr = qp->attr;
	attr->cur_qp_state = qp->attr.qp_state;
	attr->cap = qp->init.cap;
	*init = qp->init;
	return 0;
}

static int destroy_qp(struct ib_qp *ib, struct ib_udata *udata)
{
	struct sim_qp *qp = container_of(ib, struct sim_qp, ib);
	int error = sim_begin(sim_destroy_qp);

	if (!error)
		free_queue(qp->umem, sim_qps, ib->qp_num);
	return error;
}

/* --- SRQ and XRCD --- */

static u64 srq_bytes(const struct ib_srq_attr *attr)
{
	u32 stride = roundup_pow_of_two(srq_header_bytes + attr->max_sge * scatter_entry_bytes);

	return (u64)roundup_pow_of_two(attr->max_wr + 1) * max_t(u32, stride, least_srq_stride);
}

static int create_srq(struct ib_srq *ib, struct ib_srq_init_attr *init, struct ib_udata *udata)
{
	struct sim_srq *srq = container_of(ib, struct sim_srq, ib);
	struct mlx5_ib_create_srq_resp response = {};
	struct mlx5_ib_create_srq request;
	int number = sim_begin(sim_create_srq);

	if (!number)
		number = sim_request(udata, &request, sizeof(request));
	if (number)
		return number;
	if (init->attr.max_wr > ib->device->attrs.max_srq_wr || init->attr.max_sge > ib->device->attrs.max_srq_sge)
		return -EINVAL;
	srq->umem = pin_queue(ib->device, request.buf_addr, srq_bytes(&init->attr));
	number = number_queue(srq->umem, sim_srqs);
	if (number < 0)
		return number;
	srq->number = response.srqn = number;
	srq->attr = init->attr;
	if (ib_srq_has_cq(init->srq_type))
		ib->ext.xrc.srq_num = number;
	number = sim_respond(udata, &response, sizeof(response));
	if (number)
		free_queue(srq->umem, sim_srqs, srq->number);
	return number;
}

/* Like mlx5 it cannot be resized. */
static int modify_srq(struct ib_srq *ib, struct ib_srq_attr *attr, enum ib_srq_attr_mask mask, struct ib_udata *udata)
{
	struct sim_srq *srq = container_of(ib, struct sim_srq, ib);
	int error = sim_begin(sim_modify_srq);

	if (error)
		return error;
	if (mask & IB_SRQ_MAX_WR || (mask & IB_SRQ_LIMIT && attr->srq_limit >= srq->attr.max_wr))
		return -EINVAL;
	if (mask & IB_SRQ_LIMIT)
		srq->attr.srq_limit = attr->srq_limit;
	return 0;
}

static int query_srq(struct ib_srq *ib, struct ib_srq_attr *attr)
{
	int error = sim_begin(sim_query_srq);

	if (!error)
		*attr = container_of(ib, struct sim_srq, ib)->attr;
	return error;
}

static int destroy_srq(struct ib_srq *ib, struct ib_udata *udata)
{
	struct sim_srq *srq = container_of(ib, struct sim_srq, ib);
	int error = sim_begin(sim_destroy_srq);

	if (!error)
		free_queue(srq->umem, sim_srqs, srq->number);
	return error;
}

static int alloc_xrcd(struct ib_xrcd *ib, struct ib_udata *udata)
{
	int number = sim_begin(sim_alloc_xrcd);

	if (!number)
		number = sim_number(sim_xrcds);
	if (number < 0)
		return number;
	container_of(ib, struct sim_xrcd, ib)->number = number;
	return 0;
}

static int dealloc_xrcd(struct ib_xrcd *ib, struct ib_udata *udata)
{
	int error = sim_begin(sim_dealloc_xrcd);

	if (!error)
		sim_number_free(sim_xrcds, container_of(ib, struct sim_xrcd, ib)->number);
	return error;
}

const struct ib_device_ops sim_queue_ops = {
	.create_cq = create_cq,
	.modify_cq = modify_cq,
	.resize_cq = resize_cq,
	.destroy_cq = destroy_cq,
	.create_qp = create_qp,
	.modify_qp = modify_qp,
	.query_qp = query_qp,
	.destroy_qp = destroy_qp,
	.create_srq = create_srq,
	.modify_srq = modify_srq,
	.query_srq = query_srq,
	.destroy_srq = destroy_srq,
	.alloc_xrcd = alloc_xrcd,
	.dealloc_xrcd = dealloc_xrcd,
	INIT_RDMA_OBJ_SIZE(ib_cq, sim_cq, ib),
	INIT_RDMA_OBJ_SIZE(ib_qp, sim_qp, ib),
	INIT_RDMA_OBJ_SIZE(ib_srq, sim_srq, ib),
	INIT_RDMA_OBJ_SIZE(ib_xrcd, sim_xrcd, ib),
};
