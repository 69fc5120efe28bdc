// Stands in for a program with verbs objects where there is no RDMA, and keeps the limit of its tenant over all devices as the provider
// does: it charges, compares the generation, and backs out; a denial asks the sidecar for more.
//
//   RDMAQUOTA_DIR=DIR cluster_user TENANT RESOURCE
//
// Reads lines: "take N" charges N times one, "give N" uncharges; answers "has TOTAL", the number of charges that it holds, and after
// "take" the microseconds that the longest charge took.
#include <chrono>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <utility>

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "shm/ledger/ledger.hpp"
#include "shm/ledger/ledger_gates.hpp"
#include "shm/paths.hpp"
#include "shm/policy/limits_segment.hpp"
#include "test/uverbs_identity.hpp"

namespace {

using namespace rdmaquota;

[[noreturn]] void give_up(const std::string& why) {
    std::fprintf(stderr, "cluster_user: %s\n", why.c_str());
    std::exit(1);
}

class User {
public:
    User(std::string directory, std::string tenant, Resource resource)
        : directory_(std::move(directory)), tenant_(std::move(tenant)), resource_(resource), here_(here_path(directory_, tenant_)),
          ledger_(opened(Ledger::open(ledger_path(here_)))), owner_(opened(ledger_.claim(identity_of_self()))),
          device_(*ledger_.device_index(uverbs_identity_of("rxe0"), "rxe0")) {}

    // Holds the device open, as every program does that has objects.
    void open_device(bool open) {
        if (std::exchange(is_open_, open) == open) return;
        Amounts amounts;
        amounts.add(Resource::hca_handle, 1);
        const Limits none;
        if (open) (void)ledger_.charge(owner_, device_, amounts, &none);
        else ledger_.uncharge(owner_, device_, amounts);
    }

    bool take() {
        const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(250);
        while (true) {
            const auto limits = opened(LimitsSegment::open(limits_path(here_)));
            const auto generation = limits.generation();
            Amounts amounts;
            amounts.add(resource_, 1);
            Limits bounds;
            bounds.tenant_total = limits.limit(Scope::tenant, total_device, resource_);
            if (!ledger_.charge(owner_, device_, amounts, &bounds)) {
                if (limits.generation() == generation && !limits.superseded()) return ++has_, true;
                ledger_.give_back(owner_, device_, amounts);
                continue;
            }
            if (std::chrono::steady_clock::now() >= end) return false;
            ask();
        }
    }
    void give() {
        Amounts amounts;
        amounts.add(resource_, 1);
        ledger_.uncharge(owner_, device_, amounts);
        --has_;
    }
    std::uint64_t has() const { return has_; }

private:
    template <class T>
    static T opened(Result<T> result) {
        if (!result) give_up(result.error());
        return std::move(*result);
    }

    void ask() {
        auto& word = ledger_.demand(device_, resource_);
        store(word, next_demand(load(word), ledger_.gate(device_, resource_) + 1));
        sockaddr_un address{};
        address.sun_family = AF_UNIX;
        (directory_ + "/control.sock").copy(address.sun_path, sizeof address.sun_path - 1);
        const int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
        const auto line = "{\"version\":1,\"request\":\"grant\",\"tenant\":\"" + tenant_ + "\"}\n";
        char answer[256];
        if (::connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0 && ::send(fd, line.data(), line.size(), MSG_NOSIGNAL) > 0) {
            pollfd polled{fd, POLLIN, 0};
            if (::poll(&polled, 1, 250) == 1) (void)!::read(fd, answer, sizeof answer);
        }
        ::close(fd);
    }

    std::string directory_, tenant_;
    Resource resource_;
    std::string here_;
    Ledger ledger_;
    Owner owner_;
    std::uint32_t device_;
    std::uint64_t has_ = 0;
    bool is_open_ = false;
};

}  // namespace

int main(int argc, char** argv) {
    const char* directory = std::getenv("RDMAQUOTA_DIR");
    if (directory == nullptr || argc != 3 || !find_resource(argv[2])) give_up("usage: RDMAQUOTA_DIR=DIR cluster_user TENANT RESOURCE");
    User user(directory, argv[1], *find_resource(argv[2]));
    char word[16];
    std::uint64_t count = 0;
    while (std::scanf("%15s %" SCNu64, word, &count) == 2) {
        std::int64_t longest_us = 0;
        if (user.has() == 0 && std::strcmp(word, "take") == 0) user.open_device(true);
        for (std::uint64_t i = 0; i < count; ++i) {
            const auto begin = std::chrono::steady_clock::now();
            if (std::strcmp(word, "give") == 0 && user.has() != 0) user.give();
            else if (std::strcmp(word, "take") == 0 && !user.take()) break;
            longest_us = std::max<std::int64_t>(longest_us, std::chrono::duration_cast<std::chrono::microseconds>(std::chrono::steady_clock::now() - begin).count());
        }
        if (user.has() == 0) user.open_device(false);
        std::printf("has %" PRIu64 " %" PRId64 "\n", user.has(), longest_us);
        std::fflush(stdout);
    }
}
