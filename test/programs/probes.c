/*
 * A verbs program that finds out what the device can do: it asks for what a device of ours lacks and prints each error's
 * name. The exit status is 2 for no device.
 */
#include <errno.h>
#include <fcntl.h>
#include <infiniband/verbs.h>
#include <stdio.h>
#include <string.h>

static void probe(const char *name, void *made)
{
	printf("%s: %s\n", name, made ? "made" : strerrorname_np(errno));
}

int main(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *context = list && *list ? ibv_open_device(*list) : NULL;
	struct ibv_pd *pd = context ? ibv_alloc_pd(context) : NULL;
	struct ibv_cq *cq = context ? ibv_create_cq(context, 16, NULL, NULL, 0) : NULL;
	struct ibv_alloc_dm_attr dm = {.length = 64};
	struct ibv_xrcd_init_attr xrcd = {
		.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS, .fd = -1, .oflags = O_CREAT};
	struct ibv_counters_init_attr counters = {0};
	struct ibv_wq_init_attr wq = {.wq_type = IBV_WQT_RQ, .max_wr = 16, .max_sge = 1, .pd = pd, .cq = cq};

	if (!pd || !cq)
		return 2;
	probe("dmabuf", ibv_reg_dmabuf_mr(pd, 0, 0, 0, -1, 0));
	probe("null", ibv_alloc_null_mr(pd));
	probe("dm", ibv_alloc_dm(context, &dm));
	probe("xrcd", ibv_open_xrcd(context, &xrcd));
	probe("counters", ibv_create_counters(context, &counters));
	probe("wq", ibv_create_wq(context, &wq));
	return 0;
}
