// SPDX-License-Identifier: GPL-2.0
/* PDs, AHs and all that names memory: MRs, MWs, device memory. */
#include <linux/slab.h>
#include <linux/vmalloc.h>
#include <rdma/mlx5_user_ioctl_cmds.h>
#include <rdma/mlx5_user_ioctl_verbs.h>
#include <rdma/uverbs_std_types.h>

#include "mlx5sim.h"

enum { SIM_METHOD_REG_MR = 1 << UVERBS_ID_NS_SHIFT };
enum {
	SIM_ATTR_REG_MR_HANDLE = 1 << UVERBS_ID_NS_SHIFT,
	SIM_ATTR_REG_MR_PD,
	SIM_ATTR_REG_MR_ADDRESS,
	SIM_ATTR_REG_MR_LENGTH,
};

#define UVERBS_MODULE_NAME mlx5sim
#include <rdma/uverbs_named_ioctl.h>

struct sim_pd {
	struct ib_pd ib;
	u32 number;
};

struct sim_ah {
	struct ib_ah ib;
};

struct sim_mw {
	struct ib_mw ib;
};

/* `umem` is NULL for memory that is not pinned. */
struct sim_mr {
	struct ib_mr ib;
	struct ib_umem *umem;
};

struct sim_dm {
	struct ib_dm ib;
	struct sim_context *context;
	void *memory;
	u32 index;
};

static int alloc_pd(struct ib_pd *ib, struct ib_udata *udata)
{
	struct sim_pd *pd = container_of(ib, struct sim_pd, ib);
	struct mlx5_ib_alloc_pd_resp response;
	int number = sim_begin(sim_alloc_pd);

	if (!number)
		number = sim_number(sim_pds);
	if (number < 0)
		return number;
	pd->number = number;
	response.pdn = number;
	number = sim_respond(udata, &response, sizeof(response));
	if (number)
		sim_number_free(sim_pds, pd->number);
	return number;
}

static int dealloc_pd(struct ib_pd *ib, struct ib_udata *udata)
{
	int error = sim_begin(sim_dealloc_pd);

	if (!error)
		sim_number_free(sim_pds, container_of(ib, struct sim_pd, ib)->number);
	return error;
}

/* What a second handle of the PD (ibv_import_pd) asks. */
static int UVERBS_HANDLER(MLX5_IB_METHOD_PD_QUERY)(struct uverbs_attr_bundle *attrs)
{
	struct ib_pd *ib = uverbs_attr_get_obj(attrs, MLX5_IB_ATTR_QUERY_PD_HANDLE);
	struct sim_pd *pd = container_of(ib, struct sim_pd, ib);

	return uverbs_copy_to(attrs, MLX5_IB_ATTR_QUERY_PD_RESP_PDN, &pd->number, sizeof(pd->number));
}

static int create_ah(struct ib_ah *ib, struct rdma_ah_init_attr *attr, struct ib_udata *udata)
{
	struct mlx5_ib_create_ah_resp response = { .response_length = sizeof(response) };
	int error = sim_begin(sim_create_ah);

	if (error)
		return error;
	memcpy(response.dmac, attr->ah_attr->roce.dmac, ETH_ALEN);
	return sim_respond(udata, &response, sizeof(response));
}

static int destroy_ah(struct ib_ah *ib, u32 flags)
{
	return sim_begin(sim_destroy_ah);
}

/* new_mr: a numbered MR over `umem`, which it owns from now on also when it fails. */
static struct ib_mr *new_mr(struct ib_umem *umem, u64 length, u64 iova)
{
	u32 number;
	struct sim_mr *mr = sim_new(sizeof(*mr), sim_mkeys, umem, &number);

	if (IS_ERR(mr))
		return ERR_CAST(mr);
	mr->umem = umem;
	mr->ib.lkey = mr->ib.rkey = number << 8;
	mr->ib.length = length;
	mr->ib.iova = iova;
	return &mr->ib;
}

/* pages: those that an MR has translations for in the adapter; an on-demand one gets them later. A length beyond all
 * memory, which cannot be pinned, costs no more than all memory. */
static u64 pages(u64 start, u64 length, int access)
{
	u64 touched = length / PAGE_SIZE + DIV_ROUND_UP(offset_in_page(start) + length % PAGE_SIZE, PAGE_SIZE);

	return access & IB_ACCESS_ON_DEMAND ? 0 : min_t(u64, touched, totalram_pages());
}

static struct ib_umem *pin(struct ib_pd *pd, u64 start, u64 length, int access)
{
	return access & IB_ACCESS_ON_DEMAND ? NULL : ib_umem_get(pd->device, start, length, access);
}

static struct ib_mr *reg_user_mr(struct ib_pd *pd, u64 start, u64 length, u64 iova, int access, struct ib_udata *udata)
{
	int error = sim_begin_pages(sim_reg_mr, pages(start, length, access));

	return error ? ERR_PTR(error) : new_mr(pin(pd, start, length, access), length, iova);
}

/* Where the access changes, a new MR takes the old one's place, as mlx5 does when its adapter cannot change that. */
static struct ib_mr *rereg_user_mr(struct ib_mr *ib, int flags, u64 start, u64 length, u64 iova, int access,
				   struct ib_pd *pd, struct ib_udata *udata)
{
	struct sim_mr *mr = container_of(ib, struct sim_mr, ib);
	int error = sim_begin_pages(sim_rereg_mr, flags & IB_MR_REREG_TRANS ? pages(start, length, access) : 0);
	struct ib_umem *umem;

	if (error)
		return ERR_PTR(error);
	if (flags & IB_MR_REREG_ACCESS) {
		if (flags & IB_MR_REREG_TRANS)
			return new_mr(pin(pd, start, length, access), length, iova);
		umem = mr->umem;
		mr->umem = NULL;
		return new_mr(umem, ib->length, ib->iova);
	}
	if (flags & IB_MR_REREG_TRANS) {
		umem = pin(pd, start, length, access);
		if (IS_ERR(umem))
			return ERR_CAST(umem);
		ib_umem_release(mr->umem);
		mr->umem = umem;
		ib->length = length;
		ib->iova = iova;
	}
	return NULL;
}

static int dereg_mr(struct ib_mr *ib, struct ib_udata *udata)
{
	struct sim_mr *mr = container_of(ib, struct sim_mr, ib);
	int error = sim_begin(sim_dereg_mr);

	if (error)
		return error;
	sim_number_free(sim_mkeys, ib->lkey >> 8);
	ib_umem_release(mr->umem);
	kfree(mr);
	return 0;
}

static int alloc_mw(struct ib_mw *mw, struct ib_udata *udata)
{
	int number = sim_begin(sim_alloc_mw);

	if (!number)
		number = sim_number(sim_mkeys);
	if (number < 0)
		return number;
	mw->rkey = (u32)number << 8;
	return 0;
}

static int dealloc_mw(struct ib_mw *mw)
{
	int error = sim_begin(sim_dealloc_mw);

	if (!error)
		sim_number_free(sim_mkeys, mw->rkey >> 8);
	return error;
}

/* place_dm: gives the memory an index to map it by, and tells the library. */
static int place_dm(struct sim_dm *dm, struct uverbs_attr_bundle *attrs)
{
	u64 offset = 0;
	u16 page;
	int error = xa_alloc(&dm->context->dms, &dm->index, dm->memory, XA_LIMIT(0, U16_MAX), GFP_KERNEL);

	if (error)
		return error;
	page = dm->index;
	error = uverbs_copy_to(attrs, MLX5_IB_ATTR_ALLOC_DM_RESP_PAGE_INDEX, &page, sizeof(page));
	if (!error)
		error = uverbs_copy_to(attrs, MLX5_IB_ATTR_ALLOC_DM_RESP_START_OFFSET, &offset, sizeof(offset));
	if (error)
		xa_erase(&dm->context->dms, dm->index);
	return error;
}

static struct ib_dm *alloc_dm(struct ib_device *device, struct ib_ucontext *context, struct ib_dm_alloc_attr *attr,
			      struct uverbs_attr_bundle *attrs)
{
	int type = MLX5_IB_UAPI_DM_TYPE_MEMIC;
	int error = sim_begin(sim_alloc_dm);
	struct sim_dm *dm;

	if (!error)
		error = uverbs_get_const_default(&type, attrs, MLX5_IB_ATTR_ALLOC_DM_REQ_TYPE, MLX5_IB_UAPI_DM_TYPE_MEMIC);
	if (!error && type != MLX5_IB_UAPI_DM_TYPE_MEMIC)
		error = -EOPNOTSUPP;
	if (!error && (!attr->length || attr->length > device->attrs.max_dm_size))
		error = -EINVAL;
	if (error)
		return ERR_PTR(error);
	dm = kzalloc(sizeof(*dm), GFP_KERNEL);
	if (!dm)
		return ERR_PTR(-ENOMEM);
	dm->context = container_of(context, struct sim_context, ib);
	dm->memory = vmalloc_user(PAGE_ALIGN(attr->length));
	error = dm->memory ? place_dm(dm, attrs) : -ENOMEM;
	if (!error)
		return &dm->ib;
	vfree(dm->memory);
	kfree(dm);
	return ERR_PTR(error);
}

static int dealloc_dm(struct ib_dm *ib, struct uverbs_attr_bundle *attrs)
{
	struct sim_dm *dm = container_of(ib, struct sim_dm, ib);
	int error = sim_begin(sim_dealloc_dm);

	if (error)
		return error;
	mutex_lock(&dm->context->mutex);
	xa_erase(&dm->context->dms, dm->index);
	mutex_unlock(&dm->context->mutex);
	vfree(dm->memory);
	kfree(dm);
	return 0;
}

static struct ib_mr *reg_dm_mr(struct ib_pd *pd, struct ib_dm *dm, struct ib_dm_mr_attr *attr,
			       struct uverbs_attr_bundle *attrs)
{
	int error = sim_begin(sim_reg_dm_mr);

	return error ? ERR_PTR(error) : new_mr(NULL, attr->length, attr->offset);
}

/* What a later kernel may have: another way to an MR, by a method of the driver's. */
static int UVERBS_HANDLER(SIM_METHOD_REG_MR)(struct uverbs_attr_bundle *attrs)
{
	struct ib_uobject *uobject = uverbs_attr_get_uobject(attrs, SIM_ATTR_REG_MR_HANDLE);
	struct ib_pd *pd = uverbs_attr_get_obj(attrs, SIM_ATTR_REG_MR_PD);
	u64 address, length;
	struct ib_mr *mr;
	int error = uverbs_copy_from(&address, attrs, SIM_ATTR_REG_MR_ADDRESS);

	if (!error)
		error = uverbs_copy_from(&length, attrs, SIM_ATTR_REG_MR_LENGTH);
	if (error)
		return error;
	mr = reg_user_mr(pd, address, length, address, IB_ACCESS_LOCAL_WRITE, NULL);
	if (IS_ERR(mr))
		return PTR_ERR(mr);
	mr->device = pd->device;
	mr->pd = pd;
	mr->type = IB_MR_TYPE_USER;
	mr->uobject = uobject;
	atomic_inc(&pd->usecnt);
	uobject->object = mr;
	uverbs_finalize_uobj_create(attrs, SIM_ATTR_REG_MR_HANDLE);
	return 0;
}

DECLARE_UVERBS_NAMED_METHOD(
	SIM_METHOD_REG_MR,
	UVERBS_ATTR_IDR(SIM_ATTR_REG_MR_HANDLE, UVERBS_OBJECT_MR, UVERBS_ACCESS_NEW, UA_MANDATORY),
	UVERBS_ATTR_IDR(SIM_ATTR_REG_MR_PD, UVERBS_OBJECT_PD, UVERBS_ACCESS_READ, UA_MANDATORY),
	UVERBS_ATTR_PTR_IN(SIM_ATTR_REG_MR_ADDRESS, UVERBS_ATTR_TYPE(u64), UA_MANDATORY),
	UVERBS_ATTR_PTR_IN(SIM_ATTR_REG_MR_LENGTH, UVERBS_ATTR_TYPE(u64), UA_MANDATORY));
ADD_UVERBS_METHODS(sim_mr_methods, UVERBS_OBJECT_MR, &UVERBS_METHOD(SIM_METHOD_REG_MR));

DECLARE_UVERBS_NAMED_METHOD(
	MLX5_IB_METHOD_PD_QUERY,
	UVERBS_ATTR_IDR(MLX5_IB_ATTR_QUERY_PD_HANDLE, UVERBS_OBJECT_PD, UVERBS_ACCESS_READ, UA_MANDATORY),
	UVERBS_ATTR_PTR_OUT(MLX5_IB_ATTR_QUERY_PD_RESP_PDN, UVERBS_ATTR_TYPE(u32), UA_MANDATORY));
ADD_UVERBS_METHODS(sim_pd_methods, UVERBS_OBJECT_PD, &UVERBS_METHOD(MLX5_IB_METHOD_PD_QUERY));

ADD_UVERBS_ATTRIBUTES_SIMPLE(
	sim_dm_alloc, UVERBS_OBJECT_DM, UVERBS_METHOD_DM_ALLOC,
	UVERBS_ATTR_PTR_OUT(MLX5_IB_ATTR_ALLOC_DM_RESP_START_OFFSET, UVERBS_ATTR_TYPE(u64), UA_MANDATORY),
	UVERBS_ATTR_PTR_OUT(MLX5_IB_ATTR_ALLOC_DM_RESP_PAGE_INDEX, UVERBS_ATTR_TYPE(u16), UA_OPTIONAL),
	UVERBS_ATTR_CONST_IN(MLX5_IB_ATTR_ALLOC_DM_REQ_TYPE, enum mlx5_ib_uapi_dm_type, UA_OPTIONAL));

const struct uapi_definition sim_memory_defs[] = {
	UAPI_DEF_CHAIN_OBJ_TREE(UVERBS_OBJECT_PD, &sim_pd_methods),
	UAPI_DEF_CHAIN_OBJ_TREE(UVERBS_OBJECT_DM, &sim_dm_alloc),
	UAPI_DEF_CHAIN_OBJ_TREE(UVERBS_OBJECT_MR, &sim_mr_methods),
	{},
};

const struct ib_device_ops sim_memory_ops = {
	.alloc_pd = alloc_pd,
	.dealloc_pd = dealloc_pd,
	.create_ah = create_ah,
	.create_user_ah = create_ah,
	.destroy_ah = destroy_ah,
	.reg_user_mr = reg_user_mr,
	.rereg_user_mr = rereg_user_mr,
	.dereg_mr = dereg_mr,
	.alloc_mw = alloc_mw,
	.dealloc_mw = dealloc_mw,
	.alloc_dm = alloc_dm,
	.dealloc_dm = dealloc_dm,
	.reg_dm_mr = reg_dm_mr,
	INIT_RDMA_OBJ_SIZE(ib_pd, sim_pd, ib),
	INIT_RDMA_OBJ_SIZE(ib_ah, sim_ah, ib),
	INIT_RDMA_OBJ_SIZE(ib_mw, sim_mw, ib),
};
