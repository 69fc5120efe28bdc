/* SPDX-License-Identifier: GPL-2.0 */
/*
 * mlx5sim: an RDMA device that the real, unmodified libmlx5 takes for a ConnectX adapter, without one. A module for
 * tests in a virtual machine; it serves the control path only.
 *
 * What is simulated, by the interface of <rdma/mlx5-abi.h> and <rdma/mlx5_user_ioctl_cmds.h>:
 *   context   driver id and ABI version, so that libmlx5 matches by driver id (there is no PCI device); capabilities;
 *             UARs as objects of their own, as kernels since 5.7 have them; every UAR is the same zeroed page
 *   port      one, RoCE v2, on the network device named by the module parameter `netdev`; its GIDs are that device's
 *   objects   PD, AH, MR, MW, CQ (resize too), QP of every type with state and attributes, SRQ (XRC too), XRCD, WQ,
 *             WQ indirection table, flow, counters, device memory
 *   pinning   MRs and the buffers of queues are pinned by ib_umem_get() and count against RLIMIT_MEMLOCK; an on-demand
 *             MR pins nothing
 *   rereg     in place, or by a new MR where the access changes; and a method of its own to register one, which stands for
 *             those of later kernels (attributes in memory.c)
 *   DEVX      see devx.c
 *   commands  a queue with a settable number of slots, in which commands take a settable time (queue.c)
 * Object numbers are unique in their kind. What is not simulated: work requests, completions and events (a posted
 * request stays for ever), hardware limits other than those that query_device shows. README.md has what resembles an adapter.
 *
 * Knobs, for each command (see SIM_COMMANDS) in /sys/kernel/debug/mlx5sim/COMMAND/:
 *   errno     when not 0, the command fails with it. A destroying command that still fails when its process has ended
 *             leaks the object, as it would with real hardware: reset the knob first.
 *   delay_ms  the command first sleeps that long, or until its process is killed
 *   calls     how often it was called
 * and for all of them in /sys/kernel/debug/mlx5sim/queue/:
 *   slots       how many commands are executed at once (32)
 *   command_us  how long each takes in its slot; 0: no time, and no slot
 *   page_ns     how much longer it takes for each page that is registered
 *
 * The facts about what libmlx5 asks and wants to hear are from rdma-core's providers/mlx5, releases 44 to 65.
 */
#ifndef MLX5SIM_H
#define MLX5SIM_H

#include <linux/dcache.h>
#include <linux/mutex.h>
#include <linux/xarray.h>
#include <rdma/ib_umem.h>
#include <rdma/ib_verbs.h>
#include <rdma/mlx5-abi.h>
#include <rdma/uverbs_ioctl.h>

#define SIM_COMMANDS(X) \
	X(alloc_ucontext) X(query_device) X(query_port) X(alloc_uar) X(dealloc_uar) \
	X(alloc_pd) X(dealloc_pd) X(create_ah) X(destroy_ah) \
	X(reg_mr) X(rereg_mr) X(reg_dm_mr) X(dereg_mr) X(alloc_mw) X(dealloc_mw) X(alloc_dm) X(dealloc_dm) \
	X(create_cq) X(modify_cq) X(resize_cq) X(destroy_cq) \
	X(create_qp) X(modify_qp) X(query_qp) X(destroy_qp) \
	X(create_srq) X(modify_srq) X(query_srq) X(destroy_srq) X(alloc_xrcd) X(dealloc_xrcd) \
	X(create_wq) X(modify_wq) X(destroy_wq) X(create_rwq_ind_table) X(destroy_rwq_ind_table) \
	X(create_flow) X(destroy_flow) X(create_counters) X(destroy_counters) X(read_counters) \
	X(devx_general) X(devx_create) X(devx_modify) X(devx_query) X(devx_destroy) X(devx_umem_reg) X(devx_umem_dereg)

enum sim_command {
#define X(name) sim_##name,
	SIM_COMMANDS(X)
#undef X
	sim_command_count,
};

/* A process's open device. `mutex` guards `dms`: device memory by the page index that libmlx5 maps it with. */
struct sim_context {
	struct ib_ucontext ib;
	struct page *uar;
	bool devx;
	struct mutex mutex;
	struct xarray dms;
};

/* The kinds of objects that have numbers of their own. */
enum sim_kind { sim_pds, sim_mkeys, sim_cqs, sim_qps, sim_srqs, sim_xrcds, sim_rqts, sim_umems, sim_others };

/*
 * knobs.c. sim_begin() is what every command calls first, sim_begin_pages() if it registers pages: it returns 0, or the
 * negative errno to fail with.
 */
int sim_begin(enum sim_command command);
int sim_begin_pages(enum sim_command command, u64 pages);
void sim_knobs_create(void);
void sim_knobs_remove(void);

/* queue.c. sim_queue() returns when the adapter would have executed the command. */
void sim_queue(enum sim_command command, u64 pages);
void sim_queue_knobs(struct dentry *directory);

/* numbers.c. A number of 24 bits that no living object of the kind has, or a negative errno. */
int sim_number(enum sim_kind kind);
void sim_number_free(enum sim_kind kind, u32 number);

/*
 * numbers.c. `bytes` of zeroed memory for an object that is to own `umem` (NULL: none), and its number. On failure it
 * releases `umem` and returns an error pointer; that is what it returns for an error pointer in `umem`, too.
 */
void *sim_new(size_t bytes, enum sim_kind kind, struct ib_umem *umem, u32 *number);

/* numbers.c. Copies what of a request or response the user's library knows; a request's rest is zeroed. */
int sim_request(struct ib_udata *udata, void *request, size_t bytes);
int sim_respond(struct ib_udata *udata, const void *response, size_t bytes);

/* Each file's ops and ioctl methods. */
extern const struct ib_device_ops sim_device_ops, sim_memory_ops, sim_queue_ops, sim_steering_ops;
extern const struct uapi_definition sim_device_defs[], sim_memory_defs[], sim_devx_defs[];

#endif
