// SPDX-License-Identifier: GPL-2.0
/* Device, port, contexts and UARs. */
#include <linux/mm.h>
#include <linux/vmalloc.h>
#include <rdma/mlx5_user_ioctl_cmds.h>
#include <rdma/mlx5_user_ioctl_verbs.h>
#include <rdma/uverbs_std_types.h>

#include "mlx5sim.h"

#define UVERBS_MODULE_NAME mlx5sim
#include <rdma/uverbs_named_ioctl.h>

enum { mellanox = 0x02c9, connectx5 = 4119, max_objects = 1 << 17, max_entries = 1 << 15, max_dm = 1 << 20 };

static void fill_odp(struct ib_odp_caps *odp)
{
	odp->general_caps = IB_ODP_SUPPORT | IB_ODP_SUPPORT_IMPLICIT;
	odp->per_transport_caps.rc_odp_caps = IB_ODP_SUPPORT_SEND | IB_ODP_SUPPORT_RECV | IB_ODP_SUPPORT_WRITE |
					      IB_ODP_SUPPORT_READ;
	odp->per_transport_caps.ud_odp_caps = IB_ODP_SUPPORT_SEND;
}

static int query_device(struct ib_device *device, struct ib_device_attr *attr, struct ib_udata *udata)
{
	struct mlx5_ib_query_device_resp response = { .response_length = min(sizeof(response), udata->outlen) };
	int error = sim_begin(sim_query_device);

	if (error)
		return error;
	*attr = (struct ib_device_attr) {
		.fw_ver = 16ULL << 32 | 35ULL << 16 | 1,
		.sys_image_guid = device->node_guid,
		.vendor_id = mellanox,
		.vendor_part_id = connectx5,
		.max_mr_size = U64_MAX,
		.page_size_cap = 0xfffffffffffff000,
		.device_cap_flags = IB_DEVICE_RC_RNR_NAK_GEN | IB_DEVICE_PORT_ACTIVE_EVENT | IB_DEVICE_SYS_IMAGE_GUID |
				    IB_DEVICE_XRC | IB_DEVICE_MEM_WINDOW | IB_DEVICE_MEM_WINDOW_TYPE_2B |
				    IB_DEVICE_MEM_MGT_EXTENSIONS,
		.kernel_cap_flags = IBK_ON_DEMAND_PAGING,
		.max_qp = max_objects,
		.max_qp_wr = max_entries,
		.max_send_sge = 30,
		.max_recv_sge = 30,
		.max_sge_rd = 30,
		.max_cq = max_objects,
		.max_cqe = (1 << 22) - 1,
		.max_mr = max_objects,
		.max_pd = max_objects,
		.max_mw = max_objects,
		.max_ah = INT_MAX,
		.max_srq = max_objects,
		.max_srq_wr = max_entries - 1,
		.max_srq_sge = 31,
		.max_qp_rd_atom = 16,
		.max_qp_init_rd_atom = 16,
		.max_res_rd_atom = 16 * max_objects,
		.atomic_cap = IB_ATOMIC_HCA,
		.max_pkeys = 1,
		.local_ca_ack_delay = 16,
		.rss_caps = { .max_rwq_indirection_tables = max_objects, .max_rwq_indirection_table_size = 2048 },
		.max_wq_type_rq = max_objects,
		.max_dm_size = max_dm,
	};
	fill_odp(&attr->odp_caps);
	return sim_respond(udata, &response, sizeof(response));
}

static int query_port(struct ib_device *device, u32 port, struct ib_port_attr *attr)
{
	int error = sim_begin(sim_query_port);

	if (error)
		return error;
	attr->state = IB_PORT_ACTIVE;
	attr->phys_state = IB_PORT_PHYS_STATE_LINK_UP;
	attr->max_mtu = IB_MTU_4096;
	attr->active_mtu = IB_MTU_1024;
	attr->gid_tbl_len = 16;
	attr->ip_gids = true;
	attr->max_msg_sz = 1 << 30;
	attr->pkey_tbl_len = 1;
	attr->max_vl_num = 1;
	attr->active_width = IB_WIDTH_4X;
	attr->active_speed = IB_SPEED_EDR;
	return 0;
}

static int get_port_immutable(struct ib_device *device, u32 port, struct ib_port_immutable *immutable)
{
	immutable->gid_tbl_len = 16;
	immutable->pkey_tbl_len = 1;
	/* Neither MAD nor CM: the kernel's own users would then expect a data path. */
	immutable->core_cap_flags = RDMA_CORE_CAP_PROT_ROCE_UDP_ENCAP | RDMA_CORE_CAP_ETH_AH;
	return 0;
}

static enum rdma_link_layer get_link_layer(struct ib_device *device, u32 port)
{
	return IB_LINK_LAYER_ETHERNET;
}

static int query_pkey(struct ib_device *device, u32 port, u16 index, u16 *pkey)
{
	*pkey = 0xffff;
	return 0;
}

/* No `tot_bfregs`: libmlx5 then makes each UAR by an ioctl, as with every kernel since 5.7. */
static struct mlx5_ib_alloc_ucontext_resp context_response(size_t room)
{
	return (struct mlx5_ib_alloc_ucontext_resp) {
		.qp_tab_size = max_objects,
		.bf_reg_size = 512,
		.cache_line_size = 64,
		.max_sq_desc_sz = 1024,
		.max_rq_desc_sz = 512,
		.max_send_wqebb = max_entries,
		.max_recv_wr = max_entries,
		.max_srq_recv_wr = max_entries,
		.num_ports = 1,
		.comp_mask = MLX5_IB_ALLOC_UCONTEXT_RESP_MASK_DUMP_FILL_MKEY,
		.response_length = min(room, sizeof(struct mlx5_ib_alloc_ucontext_resp)),
		.cqe_version = 1,
		.cmds_supp_uhw = MLX5_USER_CMDS_SUPP_UHW_QUERY_DEVICE | MLX5_USER_CMDS_SUPP_UHW_CREATE_AH,
		.eth_min_inline = MLX5_USER_INLINE_MODE_NONE,
		.log_uar_size = PAGE_SHIFT,
		.num_uars_per_page = 1,
		.dump_fill_mkey = 0x700,
	};
}

static int alloc_ucontext(struct ib_ucontext *ib, struct ib_udata *udata)
{
	struct sim_context *context = container_of(ib, struct sim_context, ib);
	struct mlx5_ib_alloc_ucontext_resp response = context_response(udata->outlen);
	struct mlx5_ib_alloc_ucontext_req_v2 request;
	int error = sim_begin(sim_alloc_ucontext);

	if (!error)
		error = sim_request(udata, &request, sizeof(request));
	if (error)
		return error;
	if (request.flags & ~MLX5_IB_ALLOC_UCTX_DEVX || request.comp_mask || !(request.lib_caps & MLX5_LIB_CAP_DYN_UAR))
		return -EOPNOTSUPP;
	context->uar = alloc_page(GFP_KERNEL | __GFP_ZERO);
	if (!context->uar)
		return -ENOMEM;
	context->devx = request.flags & MLX5_IB_ALLOC_UCTX_DEVX;
	mutex_init(&context->mutex);
	xa_init_flags(&context->dms, XA_FLAGS_ALLOC);
	error = sim_respond(udata, &response, sizeof(response));
	if (error)
		put_page(context->uar);
	return error;
}

static void dealloc_ucontext(struct ib_ucontext *ib)
{
	struct sim_context *context = container_of(ib, struct sim_context, ib);

	xa_destroy(&context->dms);
	put_page(context->uar);
}

static int query_ucontext(struct ib_ucontext *ib, struct uverbs_attr_bundle *attrs)
{
	size_t room = uverbs_attr_get_len(attrs, MLX5_IB_ATTR_QUERY_CONTEXT_RESP_UCTX);
	struct mlx5_ib_alloc_ucontext_resp response = context_response(room);

	return uverbs_copy_to_struct_or_zero(attrs, MLX5_IB_ATTR_QUERY_CONTEXT_RESP_UCTX, &response, sizeof(response));
}

static void disassociate_ucontext(struct ib_ucontext *ib)
{
}

static int map_dm(struct sim_context *context, struct vm_area_struct *area, u32 index)
{
	void *memory;
	int error = -EINVAL;

	mutex_lock(&context->mutex);
	memory = xa_load(&context->dms, index);
	if (memory)
		error = remap_vmalloc_range(area, memory, 0);
	mutex_unlock(&context->mutex);
	return error;
}

/* libmlx5 puts a command and an index into the offset: the index's low byte, the command, the index's high byte. */
static int map(struct ib_ucontext *ib, struct vm_area_struct *area)
{
	struct sim_context *context = container_of(ib, struct sim_context, ib);
	unsigned long offset = area->vm_pgoff;

	switch (offset >> 8 & 0xff) {
	case MLX5_IB_MMAP_DEVICE_MEM:
		return map_dm(context, area, (offset & 0xff) | (offset >> 16 & 0xff) << 8);
	case MLX5_IB_MMAP_REGULAR_PAGE:
	case MLX5_IB_MMAP_NC_PAGE:
		if (area->vm_end - area->vm_start != PAGE_SIZE)
			return -EINVAL;
		return vm_insert_page(area, area->vm_start, context->uar);
	default:
		return -EINVAL;
	}
}

static int UVERBS_HANDLER(MLX5_IB_METHOD_UAR_OBJ_ALLOC)(struct uverbs_attr_bundle *attrs)
{
	struct ib_uobject *object = uverbs_attr_get_uobject(attrs, MLX5_IB_ATTR_UAR_OBJ_ALLOC_HANDLE);
	u64 offset = (u64)MLX5_IB_MMAP_NC_PAGE << 8 << PAGE_SHIFT;
	u32 length = PAGE_SIZE;
	u32 page = 1;
	int error = sim_begin(sim_alloc_uar);

	if (error)
		return error;
	/* All share the context's page, so there is nothing to remember. */
	object->object = object;
	uverbs_finalize_uobj_create(attrs, MLX5_IB_ATTR_UAR_OBJ_ALLOC_HANDLE);
	error = uverbs_copy_to(attrs, MLX5_IB_ATTR_UAR_OBJ_ALLOC_MMAP_OFFSET, &offset, sizeof(offset));
	if (!error)
		error = uverbs_copy_to(attrs, MLX5_IB_ATTR_UAR_OBJ_ALLOC_MMAP_LENGTH, &length, sizeof(length));
	if (!error)
		error = uverbs_copy_to(attrs, MLX5_IB_ATTR_UAR_OBJ_ALLOC_PAGE_ID, &page, sizeof(page));
	return error;
}

static int free_uar(struct ib_uobject *object, enum rdma_remove_reason why, struct uverbs_attr_bundle *attrs)
{
	return sim_begin(sim_dealloc_uar);
}

DECLARE_UVERBS_NAMED_METHOD(
	MLX5_IB_METHOD_UAR_OBJ_ALLOC,
	UVERBS_ATTR_IDR(MLX5_IB_ATTR_UAR_OBJ_ALLOC_HANDLE, MLX5_IB_OBJECT_UAR, UVERBS_ACCESS_NEW, UA_MANDATORY),
	UVERBS_ATTR_CONST_IN(MLX5_IB_ATTR_UAR_OBJ_ALLOC_TYPE, enum mlx5_ib_uapi_uar_alloc_type, UA_MANDATORY),
	UVERBS_ATTR_PTR_OUT(MLX5_IB_ATTR_UAR_OBJ_ALLOC_MMAP_OFFSET, UVERBS_ATTR_TYPE(u64), UA_MANDATORY),
	UVERBS_ATTR_PTR_OUT(MLX5_IB_ATTR_UAR_OBJ_ALLOC_MMAP_LENGTH, UVERBS_ATTR_TYPE(u32), UA_MANDATORY),
	UVERBS_ATTR_PTR_OUT(MLX5_IB_ATTR_UAR_OBJ_ALLOC_PAGE_ID, UVERBS_ATTR_TYPE(u32), UA_MANDATORY));

DECLARE_UVERBS_NAMED_METHOD_DESTROY(
	MLX5_IB_METHOD_UAR_OBJ_DESTROY,
	UVERBS_ATTR_IDR(MLX5_IB_ATTR_UAR_OBJ_DESTROY_HANDLE, MLX5_IB_OBJECT_UAR, UVERBS_ACCESS_DESTROY, UA_MANDATORY));

DECLARE_UVERBS_NAMED_OBJECT(MLX5_IB_OBJECT_UAR, UVERBS_TYPE_ALLOC_IDR(free_uar),
			    &UVERBS_METHOD(MLX5_IB_METHOD_UAR_OBJ_ALLOC), &UVERBS_METHOD(MLX5_IB_METHOD_UAR_OBJ_DESTROY));

ADD_UVERBS_ATTRIBUTES_SIMPLE(sim_query_context, UVERBS_OBJECT_DEVICE, UVERBS_METHOD_QUERY_CONTEXT,
			     UVERBS_ATTR_PTR_OUT(MLX5_IB_ATTR_QUERY_CONTEXT_RESP_UCTX,
						 UVERBS_ATTR_STRUCT(struct mlx5_ib_alloc_ucontext_resp, dump_fill_mkey),
						 UA_MANDATORY));

const struct uapi_definition sim_device_defs[] = {
	UAPI_DEF_CHAIN_OBJ_TREE_NAMED(MLX5_IB_OBJECT_UAR),
	UAPI_DEF_CHAIN_OBJ_TREE(UVERBS_OBJECT_DEVICE, &sim_query_context),
	{},
};

const struct ib_device_ops sim_device_ops = {
	.query_device = query_device,
	.query_port = query_port,
	.get_port_immutable = get_port_immutable,
	.get_link_layer = get_link_layer,
	.query_pkey = query_pkey,
	.alloc_ucontext = alloc_ucontext,
	.dealloc_ucontext = dealloc_ucontext,
	.query_ucontext = query_ucontext,
	.disassociate_ucontext = disassociate_ucontext,
	.mmap = map,
};
