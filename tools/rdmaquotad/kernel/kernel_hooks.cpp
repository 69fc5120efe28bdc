#include "tools/rdmaquotad/kernel/kernel_hooks.hpp"

namespace rdmaquota {
namespace {

using enum Hook::By;

const Hook hooks[] = {
    {kprobe, "ib_rdmacg_uncharge", "on_uncharge", nullptr},
    {kprobe, "uverbs_destroy_ufile_hw", "on_close", nullptr},
    {kprobe, "alloc_abort_idr_uobject", "on_abort", "after a failed registration of on-demand memory the next one may be missing in mr_bytes"},
    {kprobe, "ib_uverbs_handler_UVERBS_METHOD_DM_MR_REG", "on_device_memory", "mr_bytes counts MRs of device memory"},
    {kprobe, "ib_umem_odp_get", "on_demand", "mr_bytes counts on-demand memory"},
    {kprobe, "ib_umem_odp_alloc_implicit", "on_demand_implicit", "mr_bytes counts implicit on-demand memory"},
    {kprobe, "ib_uverbs_rereg_mr", "on_rereg_mr", "mr_bytes does not follow ibv_rereg_mr"},
    {kprobe, "proc_exit_connector", "on_exit", late_return},
    {kprobe, "alloc_commit_idr_uobject", "on_commit", nullptr},
    {fexit, "ib_init_ucontext", "on_open", "no process is seen to open a device: all figures are taken from netlink where it has them"},
};

}  // namespace

std::span<const Hook> kernel_hooks() { return hooks; }

}  // namespace rdmaquota
