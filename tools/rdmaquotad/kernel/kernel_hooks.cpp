#include "tools/rdmaquotad/kernel/kernel_hooks.hpp"

namespace rdmaquota {
namespace {

constexpr std::uint8_t fentry = 1, preempted = 2, kprobe = 4, directly = 8, mixed = preempted | directly;

constexpr const char* all_old =
    "no process is seen to open a device: all figures are taken from netlink where it has them";
constexpr const char* failed_on_demand =
    "after a failed registration of on-demand memory the next one may be missing in mr_bytes";
constexpr const char* device_memory = "mr_bytes counts MRs of device memory";
constexpr const char* on_demand = "mr_bytes counts on-demand memory";
constexpr const char* implicit_on_demand = "mr_bytes counts implicit on-demand memory";
constexpr const char* other_lengths = "mr_bytes does not follow ibv_rereg_mr";

const Hook hooks[] = {
    {fentry, "destroy_hw_idr_uobject", {"on_destroy"}, nullptr},
    {fentry, "uverbs_destroy_ufile_hw", {"on_close"}, nullptr},
    {fentry, "alloc_abort_idr_uobject", {"on_abort"}, failed_on_demand},
    {fentry, "ib_uverbs_handler_UVERBS_METHOD_DM_MR_REG", {"on_device_memory"}, device_memory},
    {fentry, "ib_umem_odp_get", {"on_demand"}, on_demand},
    {fentry, "ib_umem_odp_alloc_implicit", {"on_demand_implicit"}, implicit_on_demand},
    {fentry, "ib_uverbs_rereg_mr", {"on_rereg_mr"}, other_lengths},
    {fentry, "proc_exit_connector", {"on_exit"}, late_return},
    {fentry, "alloc_commit_idr_uobject", {"on_commit"}, nullptr},
    {mixed | kprobe, "ib_rdmacg_uncharge", {"probe_uncharge"}, nullptr},
    {mixed, "uverbs_destroy_ufile_hw", {"probe_close"}, nullptr},
    {mixed, "alloc_abort_idr_uobject", {"probe_abort"}, failed_on_demand},
    {mixed, "ib_uverbs_handler_UVERBS_METHOD_DM_MR_REG", {"probe_device_memory"}, device_memory},
    {mixed, "ib_umem_odp_get", {"probe_demand"}, on_demand},
    {mixed, "ib_umem_odp_alloc_implicit", {"probe_demand_implicit"}, implicit_on_demand},
    {mixed, "ib_uverbs_rereg_mr", {"probe_rereg_mr"}, other_lengths},
    {mixed | kprobe, "proc_exit_connector", {"probe_exit"}, late_return},
    {preempted | kprobe, "alloc_commit_idr_uobject", {"probe_commit"}, nullptr},
    {directly, "alloc_commit_idr_uobject", {"probe_commit_directly"}, nullptr},
    {fentry | mixed, "ib_init_ucontext", {"on_open"}, all_old},
    {kprobe, "ib_init_ucontext", {"probe_opened", "probe_opening"}, all_old},
};

}  // namespace

std::span<const Hook> kernel_hooks() { return hooks; }

}  // namespace rdmaquota
