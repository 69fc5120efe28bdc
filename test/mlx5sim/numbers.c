// SPDX-License-Identifier: GPL-2.0
/* Objects with their numbers, and the part of a command that only libmlx5 and its driver know. */
#include <linux/idr.h>
#include <linux/slab.h>

#include "mlx5sim.h"

enum { first_number = 0x40, last_number = 0xfffffe };

/* The kind is the upper byte, so that one allocator serves all kinds without a table of them. */
static DEFINE_IDA(numbers);

int sim_number(enum sim_kind kind)
{
	u32 base = (u32)kind << 24;
	int number = ida_alloc_range(&numbers, base + first_number, base + last_number, GFP_KERNEL);

	return number < 0 ? number : number - (int)base;
}

void sim_number_free(enum sim_kind kind, u32 number)
{
	ida_free(&numbers, ((u32)kind << 24) + number);
}

void *sim_new(size_t bytes, enum sim_kind kind, struct ib_umem *umem, u32 *number)
{
	void *object;
	int new;

	if (IS_ERR(umem))
		return umem;
	object = kzalloc(bytes, GFP_KERNEL);
	new = object ? sim_number(kind) : -ENOMEM;
	if (new >= 0) {
		*number = new;
		return object;
	}
	kfree(object);
	ib_umem_release(umem);
	return ERR_PTR(new);
}

int sim_request(struct ib_udata *udata, void *request, size_t bytes)
{
	memset(request, 0, bytes);
	return ib_copy_from_udata(request, udata, min(bytes, udata->inlen));
}

int sim_respond(struct ib_udata *udata, const void *response, size_t bytes)
{
	return ib_copy_to_udata(udata, (void *)response, min(bytes, udata->outlen));
}
