// SPDX-License-Identifier: GPL-2.0
/*
 * DEVX: commands that a program writes for the adapter's firmware itself. Creating commands make an object with a
 * number in the space of its kind; all answers say that it went well and are else zero, also those to queries of
 * capabilities and objects, and to changes. What a command asks for beyond its opcode is not looked at, and an
 * attribute of UMEM registration for dma-buf is not known. Memory is really pinned.
 */
#include <asm/unaligned.h>
#include <linux/bits.h>
#include <linux/mlx5/mlx5_ifc.h>
#include <linux/slab.h>
#include <rdma/mlx5_user_ioctl_cmds.h>
#include <rdma/uverbs_std_types.h>

#include "mlx5sim.h"

#define UVERBS_MODULE_NAME mlx5sim
#include <rdma/uverbs_named_ioctl.h>

/* A command begins with its opcode; an answer's third word is the number of the created object. All big-endian. */
enum { header_bytes = 16, number_at = 8 };

struct devx_object {
	enum sim_kind kind;
	u32 number;
};

struct devx_umem {
	struct ib_umem *umem;
	u32 number;
};

static int kind_of(u16 opcode)
{
	switch (opcode) {
	case MLX5_CMD_OP_CREATE_MKEY:
		return sim_mkeys;
	case MLX5_CMD_OP_CREATE_CQ:
		return sim_cqs;
	case MLX5_CMD_OP_CREATE_QP:
	case MLX5_CMD_OP_CREATE_DCT:
	case MLX5_CMD_OP_CREATE_RQ:
	case MLX5_CMD_OP_CREATE_SQ:
		return sim_qps;
	case MLX5_CMD_OP_CREATE_SRQ:
	case MLX5_CMD_OP_CREATE_XRC_SRQ:
	case MLX5_CMD_OP_CREATE_XRQ:
	case MLX5_CMD_OP_CREATE_RMP:
		return sim_srqs;
	case MLX5_CMD_OP_ALLOC_XRCD:
		return sim_xrcds;
	case MLX5_CMD_OP_CREATE_RQT:
		return sim_rqts;
	case MLX5_CMD_OP_CREATE_TIR:
	case MLX5_CMD_OP_CREATE_TIS:
	case MLX5_CMD_OP_ALLOC_TRANSPORT_DOMAIN:
	case MLX5_CMD_OP_ALLOC_Q_COUNTER:
	case MLX5_CMD_OP_CREATE_FLOW_TABLE:
	case MLX5_CMD_OP_CREATE_FLOW_GROUP:
	case MLX5_CMD_OP_SET_FLOW_TABLE_ENTRY:
	case MLX5_CMD_OP_ALLOC_FLOW_COUNTER:
	case MLX5_CMD_OP_ALLOC_PACKET_REFORMAT_CONTEXT:
	case MLX5_CMD_OP_ALLOC_MODIFY_HEADER_CONTEXT:
	case MLX5_CMD_OP_CREATE_SCHEDULING_ELEMENT:
	case MLX5_CMD_OP_CREATE_GENERAL_OBJECT:
		return sim_others;
	default:
		return -EINVAL;
	}
}

/* The kernel lets a context use DEVX when it was opened for that. */
static bool allowed(struct uverbs_attr_bundle *attrs)
{
	struct ib_ucontext *context = ib_uverbs_get_ucontext(attrs);

	return !IS_ERR(context) && container_of(context, struct sim_context, ib)->devx;
}

/* reply: an answer of zeros but for `number`, as long as the program has room */
static int reply(struct uverbs_attr_bundle *attrs, u16 attribute, u32 number)
{
	size_t bytes = uverbs_attr_get_len(attrs, attribute);
	u8 *answer = uverbs_zalloc(attrs, bytes);

	if (IS_ERR(answer))
		return PTR_ERR(answer);
	put_unaligned_be32(number, answer + number_at);
	return uverbs_copy_to(attrs, attribute, answer, bytes);
}

static int UVERBS_HANDLER(MLX5_IB_METHOD_DEVX_OBJ_CREATE)(struct uverbs_attr_bundle *attrs)
{
	struct ib_uobject *uobject = uverbs_attr_get_uobject(attrs, MLX5_IB_ATTR_DEVX_OBJ_CREATE_HANDLE);
	const u8 *command = uverbs_attr_get_alloced_ptr(attrs, MLX5_IB_ATTR_DEVX_OBJ_CREATE_CMD_IN);
	int kind = kind_of(get_unaligned_be16(command));
	struct devx_object *object;
	u32 number;
	int error;

	if (kind < 0 || !allowed(attrs))
		return -EINVAL;
	error = sim_begin(sim_devx_create);
	if (error)
		return error;
	object = sim_new(sizeof(*object), kind, NULL, &number);
	if (IS_ERR(object))
		return PTR_ERR(object);
	object->kind = kind;
	object->number = number;
	uobject->object = object;
	uverbs_finalize_uobj_create(attrs, MLX5_IB_ATTR_DEVX_OBJ_CREATE_HANDLE);
	return reply(attrs, MLX5_IB_ATTR_DEVX_OBJ_CREATE_CMD_OUT, number);
}

static int free_object(struct ib_uobject *uobject, enum rdma_remove_reason why, struct uverbs_attr_bundle *attrs)
{
	struct devx_object *object = uobject->object;
	int error = sim_begin(sim_devx_destroy);

	if (error)
		return error;
	sim_number_free(object->kind, object->number);
	kfree(object);
	return 0;
}

static int UVERBS_HANDLER(MLX5_IB_METHOD_DEVX_OBJ_MODIFY)(struct uverbs_attr_bundle *attrs)
{
	int error = sim_begin(sim_devx_modify);

	return error ? error : reply(attrs, MLX5_IB_ATTR_DEVX_OBJ_MODIFY_CMD_OUT, 0);
}

static int UVERBS_HANDLER(MLX5_IB_METHOD_DEVX_OBJ_QUERY)(struct uverbs_attr_bundle *attrs)
{
	int error = sim_begin(sim_devx_query);

	return error ? error : reply(attrs, MLX5_IB_ATTR_DEVX_OBJ_QUERY_CMD_OUT, 0);
}

static int UVERBS_HANDLER(MLX5_IB_METHOD_DEVX_OTHER)(struct uverbs_attr_bundle *attrs)
{
	int error = sim_begin(sim_devx_general);

	if (!error && !allowed(attrs))
		error = -EINVAL;
	return error ? error : reply(attrs, MLX5_IB_ATTR_DEVX_OTHER_CMD_OUT, 0);
}

static int UVERBS_HANDLER(MLX5_IB_METHOD_DEVX_QUERY_EQN)(struct uverbs_attr_bundle *attrs)
{
	u32 queue = 1;

	return uverbs_copy_to(attrs, MLX5_IB_ATTR_DEVX_QUERY_EQN_DEV_EQN, &queue, sizeof(queue));
}

/* pin_for: pins what the attributes name */
static struct ib_umem *pin_for(struct uverbs_attr_bundle *attrs, struct ib_device *device)
{
	u64 address, bytes;
	u32 access;
	int error = uverbs_copy_from(&address, attrs, MLX5_IB_ATTR_DEVX_UMEM_REG_ADDR);

	if (!error)
		error = uverbs_copy_from(&bytes, attrs, MLX5_IB_ATTR_DEVX_UMEM_REG_LEN);
	if (!error)
		error = uverbs_get_flags32(&access, attrs, MLX5_IB_ATTR_DEVX_UMEM_REG_ACCESS,
					   IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_WRITE | IB_ACCESS_REMOTE_READ |
					   IB_ACCESS_RELAXED_ORDERING);
	return error ? ERR_PTR(error) : ib_umem_get(device, address, bytes, access);
}

static struct devx_umem *new_umem(struct ib_umem *umem)
{
	u32 number;
	struct devx_umem *new = sim_new(sizeof(*new), sim_umems, umem, &number);

	if (IS_ERR(new))
		return new;
	new->umem = umem;
	new->number = number;
	return new;
}

static int UVERBS_HANDLER(MLX5_IB_METHOD_DEVX_UMEM_REG)(struct uverbs_attr_bundle *attrs)
{
	struct ib_uobject *uobject = uverbs_attr_get_uobject(attrs, MLX5_IB_ATTR_DEVX_UMEM_REG_HANDLE);
	int error = sim_begin(sim_devx_umem_reg);
	struct devx_umem *umem;

	if (!error && !allowed(attrs))
		error = -EINVAL;
	if (error)
		return error;
	umem = new_umem(pin_for(attrs, uobject->context->device));
	if (IS_ERR(umem))
		return PTR_ERR(umem);
	uobject->object = umem;
	uverbs_finalize_uobj_create(attrs, MLX5_IB_ATTR_DEVX_UMEM_REG_HANDLE);
	return uverbs_copy_to(attrs, MLX5_IB_ATTR_DEVX_UMEM_REG_OUT_ID, &umem->number, sizeof(umem->number));
}

static int free_umem(struct ib_uobject *uobject, enum rdma_remove_reason why, struct uverbs_attr_bundle *attrs)
{
	struct devx_umem *umem = uobject->object;
	int error = sim_begin(sim_devx_umem_dereg);

	if (error)
		return error;
	sim_number_free(sim_umems, umem->number);
	ib_umem_release(umem->umem);
	kfree(umem);
	return 0;
}

#define COMMAND_IN(attribute) \
	UVERBS_ATTR_PTR_IN(attribute, UVERBS_ATTR_MIN_SIZE(header_bytes), UA_MANDATORY, UA_ALLOC_AND_COPY)
#define COMMAND_OUT(attribute) UVERBS_ATTR_PTR_OUT(attribute, UVERBS_ATTR_MIN_SIZE(header_bytes), UA_MANDATORY)

DECLARE_UVERBS_NAMED_METHOD(
	MLX5_IB_METHOD_DEVX_OBJ_CREATE,
	UVERBS_ATTR_IDR(MLX5_IB_ATTR_DEVX_OBJ_CREATE_HANDLE, MLX5_IB_OBJECT_DEVX_OBJ, UVERBS_ACCESS_NEW, UA_MANDATORY),
	COMMAND_IN(MLX5_IB_ATTR_DEVX_OBJ_CREATE_CMD_IN), COMMAND_OUT(MLX5_IB_ATTR_DEVX_OBJ_CREATE_CMD_OUT));
DECLARE_UVERBS_NAMED_METHOD_DESTROY(
	MLX5_IB_METHOD_DEVX_OBJ_DESTROY,
	UVERBS_ATTR_IDR(MLX5_IB_ATTR_DEVX_OBJ_DESTROY_HANDLE, MLX5_IB_OBJECT_DEVX_OBJ, UVERBS_ACCESS_DESTROY,
			UA_MANDATORY));
DECLARE_UVERBS_NAMED_METHOD(
	MLX5_IB_METHOD_DEVX_OBJ_MODIFY,
	UVERBS_ATTR_IDR(MLX5_IB_ATTR_DEVX_OBJ_MODIFY_HANDLE, UVERBS_IDR_ANY_OBJECT, UVERBS_ACCESS_WRITE, UA_MANDATORY),
	COMMAND_IN(MLX5_IB_ATTR_DEVX_OBJ_MODIFY_CMD_IN), COMMAND_OUT(MLX5_IB_ATTR_DEVX_OBJ_MODIFY_CMD_OUT));
DECLARE_UVERBS_NAMED_METHOD(
	MLX5_IB_METHOD_DEVX_OBJ_QUERY,
	UVERBS_ATTR_IDR(MLX5_IB_ATTR_DEVX_OBJ_QUERY_HANDLE, UVERBS_IDR_ANY_OBJECT, UVERBS_ACCESS_READ, UA_MANDATORY),
	COMMAND_IN(MLX5_IB_ATTR_DEVX_OBJ_QUERY_CMD_IN), COMMAND_OUT(MLX5_IB_ATTR_DEVX_OBJ_QUERY_CMD_OUT));
DECLARE_UVERBS_NAMED_OBJECT(MLX5_IB_OBJECT_DEVX_OBJ, UVERBS_TYPE_ALLOC_IDR(free_object),
			    &UVERBS_METHOD(MLX5_IB_METHOD_DEVX_OBJ_CREATE),
			    &UVERBS_METHOD(MLX5_IB_METHOD_DEVX_OBJ_DESTROY),
			    &UVERBS_METHOD(MLX5_IB_METHOD_DEVX_OBJ_MODIFY), &UVERBS_METHOD(MLX5_IB_METHOD_DEVX_OBJ_QUERY));

DECLARE_UVERBS_NAMED_METHOD(MLX5_IB_METHOD_DEVX_OTHER, COMMAND_IN(MLX5_IB_ATTR_DEVX_OTHER_CMD_IN),
			    COMMAND_OUT(MLX5_IB_ATTR_DEVX_OTHER_CMD_OUT));
DECLARE_UVERBS_NAMED_METHOD(
	MLX5_IB_METHOD_DEVX_QUERY_EQN,
	UVERBS_ATTR_PTR_IN(MLX5_IB_ATTR_DEVX_QUERY_EQN_USER_VEC, UVERBS_ATTR_TYPE(u32), UA_MANDATORY),
	UVERBS_ATTR_PTR_OUT(MLX5_IB_ATTR_DEVX_QUERY_EQN_DEV_EQN, UVERBS_ATTR_TYPE(u32), UA_MANDATORY));
DECLARE_UVERBS_GLOBAL_METHODS(MLX5_IB_OBJECT_DEVX, &UVERBS_METHOD(MLX5_IB_METHOD_DEVX_OTHER),
			      &UVERBS_METHOD(MLX5_IB_METHOD_DEVX_QUERY_EQN));

DECLARE_UVERBS_NAMED_METHOD(
	MLX5_IB_METHOD_DEVX_UMEM_REG,
	UVERBS_ATTR_IDR(MLX5_IB_ATTR_DEVX_UMEM_REG_HANDLE, MLX5_IB_OBJECT_DEVX_UMEM, UVERBS_ACCESS_NEW, UA_MANDATORY),
	UVERBS_ATTR_PTR_IN(MLX5_IB_ATTR_DEVX_UMEM_REG_ADDR, UVERBS_ATTR_TYPE(u64), UA_MANDATORY),
	UVERBS_ATTR_PTR_IN(MLX5_IB_ATTR_DEVX_UMEM_REG_LEN, UVERBS_ATTR_TYPE(u64), UA_MANDATORY),
	UVERBS_ATTR_FLAGS_IN(MLX5_IB_ATTR_DEVX_UMEM_REG_ACCESS, enum ib_access_flags),
	UVERBS_ATTR_CONST_IN(MLX5_IB_ATTR_DEVX_UMEM_REG_PGSZ_BITMAP, u64, UA_OPTIONAL),
	UVERBS_ATTR_PTR_OUT(MLX5_IB_ATTR_DEVX_UMEM_REG_OUT_ID, UVERBS_ATTR_TYPE(u32), UA_MANDATORY));
DECLARE_UVERBS_NAMED_METHOD_DESTROY(
	MLX5_IB_METHOD_DEVX_UMEM_DEREG,
	UVERBS_ATTR_IDR(MLX5_IB_ATTR_DEVX_UMEM_DEREG_HANDLE, MLX5_IB_OBJECT_DEVX_UMEM, UVERBS_ACCESS_DESTROY,
			UA_MANDATORY));
DECLARE_UVERBS_NAMED_OBJECT(MLX5_IB_OBJECT_DEVX_UMEM, UVERBS_TYPE_ALLOC_IDR(free_umem),
			    &UVERBS_METHOD(MLX5_IB_METHOD_DEVX_UMEM_REG),
			    &UVERBS_METHOD(MLX5_IB_METHOD_DEVX_UMEM_DEREG));

const struct uapi_definition sim_devx_defs[] = {
	UAPI_DEF_CHAIN_OBJ_TREE_NAMED(MLX5_IB_OBJECT_DEVX),
	UAPI_DEF_CHAIN_OBJ_TREE_NAMED(MLX5_IB_OBJECT_DEVX_OBJ),
	UAPI_DEF_CHAIN_OBJ_TREE_NAMED(MLX5_IB_OBJECT_DEVX_UMEM),
	{},
};
