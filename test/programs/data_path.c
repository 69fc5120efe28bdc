/*
 * data_path [DEVICE]: prints, for each data-path function of an open device (the first one), of a CQ and of a QP,
 * which library it lies in and where, so that two runs can be compared.
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

static struct ibv_context *open_device(const char *name)
{
	struct ibv_device **list = ibv_get_device_list(NULL);

	for (int i = 0; list && list[i]; ++i)
		if (!name || !strcmp(ibv_get_device_name(list[i]), name))
			return ibv_open_device(list[i]);
	return NULL;
}

static struct ibv_qp *make_qp(struct ibv_context *context, struct ibv_cq *cq)
{
	struct ibv_qp_init_attr_ex attr = {
		.send_cq = cq,
		.recv_cq = cq,
		.cap = { .max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1 },
		.qp_type = IBV_QPT_RC,
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.pd = ibv_alloc_pd(context),
		.send_ops_flags = IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_RDMA_WRITE,
	};

	return attr.pd ? ibv_create_qp_ex(context, &attr) : NULL;
}

static int show_objects(struct ibv_context *context)
{
	struct ibv_cq_init_attr_ex attr = { .cqe = 1, .wc_flags = IBV_WC_STANDARD_FLAGS };
	struct ibv_cq_ex *cq = ibv_create_cq_ex(context, &attr);
	struct ibv_qp *qp = cq ? make_qp(context, ibv_cq_ex_to_cq(cq)) : NULL;

	if (!qp)
		return 1;
	show("start_poll", (void *)cq->start_poll);
	show("next_poll", (void *)cq->next_poll);
	show("read_opcode", (void *)cq->read_opcode);
	struct ibv_qp_ex *extended = ibv_qp_to_qp_ex(qp);
	show("wr_start", (void *)extended->wr_start);
	show("wr_send", (void *)extended->wr_send);
	show("wr_rdma_write", (void *)extended->wr_rdma_write);
	show("wr_complete", (void *)extended->wr_complete);
	return 0;
}

int main(int argc, char **argv)
{
	struct ibv_context *context = open_device(argc > 1 ? argv[1] : NULL);

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
	int status = show_objects(context);
	ibv_close_device(context);
	return status;
}
