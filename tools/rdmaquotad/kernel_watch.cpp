#include "tools/rdmaquotad/kernel_watch.hpp"

#include <utility>

namespace rdmaquota {

struct KernelWatch::State {
    std::vector<std::string> blind;
};

KernelWatch KernelWatch::open() {
    auto state = std::make_unique<State>();
    state->blind.emplace_back("this build cannot watch the kernel");
    return KernelWatch(std::move(state));
}

KernelWatch::KernelWatch(std::unique_ptr<State> state) noexcept : state_(std::move(state)) {}
KernelWatch::KernelWatch(KernelWatch&&) noexcept = default;
KernelWatch& KernelWatch::operator=(KernelWatch&&) noexcept = default;
KernelWatch::~KernelWatch() = default;

const std::vector<std::string>& KernelWatch::blind() const noexcept { return state_->blind; }
bool KernelWatch::attached() const noexcept { return false; }
bool KernelWatch::knows(Resource) const noexcept { return false; }
int KernelWatch::fd() const noexcept { return -1; }
std::vector<KernelEvent> KernelWatch::poll() { return {}; }
Result<std::vector<KernelUse>> KernelWatch::snapshot() { return std::vector<KernelUse>(); }

}  // namespace rdmaquota
