/*
 * Prints, for each data-path function of an open device, which library it lies in and where, so
 * that two runs can be compared.
 */
#include <dlfcn.h>
#include <infiniband/verbs.h>
#include <stdio.h>
#include <string.h>

static void show(const char *name, void *function)
{
	Dl_info info;

	if (!function || !dladdr(function, &info) || !info.dli_fname) {
		printf("%s: none\n", name);
		return;
	}
	const char *file = strrchr(info.dli_fname, '/');
	printf("%s: %s+%#lx\n", name, file ? file + 1 : info.dli_fname,
	       (unsigned long)((char *)function - (char *)info.dli_fbase));
}

int main(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *context = list && list[0] ? ibv_open_device(list[0]) : NULL;

	if (!context)
		return 2;
	const struct ibv_context_ops *ops = &context->ops;
	struct verbs_context *extended = verbs_get_ctx(context);
	show("poll_cq", (void *)ops->poll_cq);
	show("req_notify_cq", (void *)ops->req_notify_cq);
	show("post_send", (void *)ops->post_send);
	show("post_recv", (void *)ops->post_recv);
	show("post_srq_recv", (void *)ops->post_srq_recv);
	show("bind_mw", (void *)ops->bind_mw);
	show("post_srq_ops", (void *)extended->post_srq_ops);
	show("advise_mr", (void *)extended->advise_mr);
	show("query_rt_values", (void *)extended->query_rt_values);
	show("read_counters", (void *)extended->read_counters);
	show("modify_wq", (void *)extended->modify_wq);
	ibv_close_device(context);
	return 0;
}
