// Every private op of every known release of rdma-core, in the order of `struct verbs_context_ops` (sorted by name),
// with the release that brought it (58.5: it came before others that are new in 59) and its class here:
//
//   charge   creates an object; wrapped, charged before the real call
//   uncharge destroys one; wrapped, uncharged after the real call
//   resize   changes what an object costs, or where; wrapped
//   import   makes or drops a handle of a kernel object that another context was charged for, as the kernel's rdma
//            cgroup has it; left alone
//   observe  changes no count; wrapped to count activity or to change what is told
//   pass     left alone: the data path, queries, and ops that make no kernel object. So are alloc_td (mlx5 gives it a
//            UAR, which the context keeps like those of its QPs) and alloc_buf (plain or DMA-heap memory; registering
//            it is charged)
//
// Charged ops without a resource of their own (alloc_dmah, create_flow_action_esp, create_comp_cntr) cost an
// hca_object; alloc_parent_domain costs nothing.
//
// Taken from libibverbs/driver.h and dummy_ops.c of releases 34.0 to 65.0. A layout is this list up to its release.
// test/unit/shm/layout_test.cpp checks the counts, test/unit/provider/wrap_test.cpp that the right ops are wrapped, and
// the layout probe (provider/abi/libibverbs.hpp) the offsets at run time.
//
// RDMAQUOTA_OPS(X) calls X(name, since, class).
#pragma once

#define RDMAQUOTA_OPS(X) \
    X(advise_mr, 34, pass) \
    X(alloc_buf, 64, pass) \
    X(alloc_dm, 34, charge) \
    X(alloc_dmah, 58.5, charge) \
    X(alloc_mw, 34, charge) \
    X(alloc_null_mr, 34, charge) \
    X(alloc_parent_domain, 34, charge) \
    X(alloc_pd, 34, charge) \
    X(alloc_td, 34, pass) \
    X(async_event, 34, pass) \
    X(attach_counters_point_flow, 34, pass) \
    X(attach_mcast, 34, pass) \
    X(bind_mw, 34, pass) \
    X(close_xrcd, 34, uncharge) \
    X(cq_event, 34, observe) \
    X(create_ah, 34, charge) \
    X(create_comp_cntr, 65, charge) \
    X(create_counters, 34, charge) \
    X(create_cq, 34, charge) \
    X(create_cq_ex, 34, charge) \
    X(create_flow, 34, charge) \
    X(create_flow_action_esp, 34, charge) \
    X(create_qp, 34, charge) \
    X(create_qp_ex, 34, charge) \
    X(create_rwq_ind_table, 34, charge) \
    X(create_srq, 34, charge) \
    X(create_srq_ex, 34, charge) \
    X(create_wq, 34, charge) \
    X(dealloc_dmah, 58.5, uncharge) \
    X(dealloc_mw, 34, uncharge) \
    X(dealloc_pd, 34, uncharge) \
    X(dealloc_td, 34, pass) \
    X(dereg_mr, 34, uncharge) \
    X(destroy_ah, 34, uncharge) \
    X(destroy_comp_cntr, 65, uncharge) \
    X(destroy_counters, 34, uncharge) \
    X(destroy_cq, 34, uncharge) \
    X(destroy_flow, 34, uncharge) \
    X(destroy_flow_action, 34, uncharge) \
    X(destroy_qp, 34, uncharge) \
    X(destroy_rwq_ind_table, 34, uncharge) \
    X(destroy_srq, 34, uncharge) \
    X(destroy_wq, 34, uncharge) \
    X(detach_mcast, 34, pass) \
    X(dm_export_dmabuf_fd, 62, pass) \
    X(free_buf, 64, pass) \
    X(free_context, 34, uncharge) \
    X(free_dm, 34, uncharge) \
    X(get_srq_num, 34, pass) \
    X(import_dm, 35, import) \
    X(import_mr, 34, import) \
    X(import_pd, 34, import) \
    X(inc_comp_cntr, 65, pass) \
    X(inc_err_comp_cntr, 65, pass) \
    X(modify_cq, 34, pass) \
    X(modify_flow_action_esp, 34, pass) \
    X(modify_qp, 34, resize) \
    X(modify_qp_rate_limit, 34, pass) \
    X(modify_srq, 34, resize) \
    X(modify_wq, 34, pass) \
    X(open_qp, 34, charge) \
    X(open_xrcd, 34, charge) \
    X(poll_cq, 34, pass) \
    X(post_recv, 34, pass) \
    X(post_send, 34, pass) \
    X(post_srq_ops, 34, pass) \
    X(post_srq_recv, 34, pass) \
    X(qp_attach_comp_cntr, 65, pass) \
    X(query_comp_cntr_caps, 65, pass) \
    X(query_device_ex, 34, observe) \
    X(query_ece, 34, pass) \
    X(query_port, 34, pass) \
    X(query_port_speed, 61.5, pass) \
    X(query_qp, 34, pass) \
    X(query_qp_data_in_order, 36, pass) \
    X(query_rt_values, 34, pass) \
    X(query_srq, 34, pass) \
    X(read_comp_cntr, 65, pass) \
    X(read_counters, 34, pass) \
    X(read_err_comp_cntr, 65, pass) \
    X(reg_dm_mr, 34, charge) \
    X(reg_dmabuf_mr, 34, charge) \
    X(reg_mr, 34, charge) \
    X(reg_mr_ex, 59, charge) \
    X(req_notify_cq, 34, pass) \
    X(rereg_mr, 34, resize) \
    X(resize_cq, 34, resize) \
    X(set_comp_cntr, 65, pass) \
    X(set_ece, 34, pass) \
    X(set_err_comp_cntr, 65, pass) \
    X(unimport_dm, 35, import) \
    X(unimport_mr, 34, import) \
    X(unimport_pd, 34, import)
