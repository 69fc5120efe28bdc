// What the storms share.
#include "storm.hpp"

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <stdexcept>
#include <system_error>

#include <fmt/core.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "test/processes.hpp"

namespace storm {
namespace {

int passed = 0;
int failed = 0;

int outcome(int status) {
    if (WIFSIGNALED(status)) return WTERMSIG(status);
    return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 0 : -1;
}

}  // namespace

void check(bool good, const std::string& name, const std::string& seen) {
    ++(good ? passed : failed);
    fmt::print("{} - {}\n", good ? "ok" : "not ok", name);
    if (!good && !seen.empty()) fmt::print("    # {}\n", seen);
    std::fflush(stdout);
}

int finish() {
    fmt::print("{} passed, {} failed\n", passed, failed);
    return failed == 0 ? 0 : 1;
}

Scene::Scene() : directory_("/dev/shm/rdmaquota-storm-XXXXXX") {
    if (!mkdtemp(directory_.data())) throw std::system_error(errno, std::generic_category(), directory_);
    path_ = directory_ + "/ledger";
    if (auto made = Ledger::create(path_, {}); !made) throw std::runtime_error(made.error());
}

Scene::~Scene() {
    std::error_code ignored;
    std::filesystem::remove_all(directory_, ignored);
}

Ledger Scene::open() const {
    auto ledger = Ledger::open(path_);
    if (!ledger) throw std::runtime_error(ledger.error());
    return std::move(*ledger);
}

pid_t spawn(const std::function<void()>& body) {
    std::fflush(stdout);
    const pid_t child = fork_child();
    if (child != 0) return child;
    prctl(PR_SET_PDEATHSIG, SIGKILL);  // a storm that fails leaves nothing behind
    try {
        body();
    } catch (const std::exception& error) {
        fmt::print(stderr, "storm: {}\n", error.what());
        _exit(1);
    }
    _exit(0);
}

int reap_child(pid_t child) { return outcome(kill_child(child)); }

int await_child(pid_t child, double seconds) {
    for (int i = 0; i < static_cast<int>(seconds * 1000); ++i) {
        int status = 0;
        if (waitpid(child, &status, WNOHANG) == child) return outcome(status);
        usleep(1000);
    }
    reap_child(child);
    return -2;
}

bool await_stop(pid_t child) {
    int status = 0;
    waitpid(child, &status, WUNTRACED);
    return WIFSTOPPED(status);
}

Amounts two_resources(std::uint64_t n) { return Amounts{}.add(Resource::qp, n).add(Resource::mr_bytes, 3 * n); }

const Limits* limits_of(std::uint64_t limit) {
    static Limits limits[2];
    limits[0].tenant = limit;
    limits[1].tenant = 3 * limit;
    return limits;
}

bool accounting_is_true(Ledger& ledger, std::string& seen) {
    ledger.reap();
    for (const auto& [device, identity, name] : ledger.devices())
        for (const auto resource : {Resource::qp, Resource::mr_bytes, Resource::pd}) {
            const auto view = ledger.reconcile(device, resource);
            const auto gate = ledger.gate(device, resource);
            const auto sum = ledger.tenant_usage(device, resource);
            if (view != Ledger::View::not_quiescent && gate == sum) continue;
            seen = fmt::format("{} {}: gate {}, slots {}{}", name, info(resource).name, gate, sum,
                               view == Ledger::View::not_quiescent ? ", never at rest" : "");
            return false;
        }
    return true;
}

bool has_room(Ledger& ledger, std::uint64_t limit, std::string& seen) {
    auto owner = ledger.claim(identity_of_self());
    if (!owner) return seen = owner.error(), false;
    const auto device = *ledger.device_index("rxe0");
    const auto denial = ledger.charge(*owner, device, two_resources(limit), limits_of(limit));
    if (denial)
        seen = fmt::format("denied {} with {} of {} in use, {}", info(denial->resource).name, denial->used,
                           denial->limit, denial->proved ? "proved" : "unproved");
    const bool over = !denial && !ledger.charge(*owner, device, two_resources(1), limits_of(limit));
    if (over) seen = "one more than the limit was admitted";
    ledger.retire(*owner);
    return !denial && !over;
}

}  // namespace storm
