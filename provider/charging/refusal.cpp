#include "provider/charging/refusal.hpp"

#include <cerrno>
#include <ctime>

#include <fmt/core.h>

#include "policy/policy.hpp"
#include "policy/resource.hpp"
#include "provider/host/cancellation.hpp"
#include "provider/host/keep_errno.hpp"
#include "provider/host/log_target.hpp"

namespace rdmaquota::provider {
namespace {

constexpr unsigned most_tries = 8;

}  // namespace

bool wait_for_guard(unsigned tries) {
    if (tries == most_tries) return false;
    const NoCancellation guard;
    const KeepErrno keep;
    const timespec pause{0, 1'000'000L << tries};
    nanosleep(&pause, nullptr);
    return true;
}

std::string refusal_line(std::string_view device, Kind kind, int error) {
    if (kind == Kind::handle && error == EAGAIN)
        return fmt::format("{} cannot be opened (EAGAIN): the guard in the kernel does not know yet whose this process is, or the "
                           "rdma cgroup refuses it; rdmaquota doctor says whether rdmaquotad runs", device);
    const auto parts = parts_of(kind);
    return fmt::format("{} on {} denied ({}) by the guard in the kernel{}, although the ledger has room: the rest is in use "
                       "around the library; rdmaquota guard says how much",
                       parts.count == 0 ? "object" : info(parts.part[0].resource).name, device, deny_errno_name(error),
                       error == EDQUOT ? "" : ", or by the device");
}

void report_refusal(std::string_view device, Kind kind, int error) {
    const NoCancellation guard;
    const KeepErrno keep;
    try {
        say(LogLevel::warning, refusal_line(device, kind, error));
    } catch (...) {  // no memory: refused without a word
    }
}

}  // namespace rdmaquota::provider
