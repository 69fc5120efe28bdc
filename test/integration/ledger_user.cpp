// Stands in for a program with verbs objects where there is no RDMA: enters itself in the ledger
// of RDMAQUOTA_DIR, charges, records one denial (or DENIALS, or one that is met REPEATS times), and stays until its standard
// input ends.
//
//   ledger_user DEVICE RES=N... [denials=DENIALS] [repeats=REPEATS]
//
// In the tenant whose key LEDGER_USER_TENANT has, else in `default`; or in a directory that is one tenant's own.
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <utility>

#include <unistd.h>

#include "policy/limit.hpp"
#include "shm/ledger/ledger.hpp"
#include "shm/paths.hpp"
#include "test/uverbs_identity.hpp"

namespace {

using namespace rdmaquota;

[[noreturn]] void give_up(const std::string& why) {
    std::fprintf(stderr, "ledger_user: %s\n", why.c_str());
    std::exit(1);
}

void charge(Ledger& ledger, const Owner& owner, std::uint32_t device, const Setting& setting) {
    Amounts amounts;
    amounts.add(setting.resource, setting.limit);
    const Limits limits;
    if (ledger.charge(owner, device, amounts, &limits)) give_up("denied");
}

Event denial_of(const Identity& self, std::uint32_t device, const Setting& setting) {
    Event event{};
    event.kind = EventKind::denied;
    event.scope = event_scope(Scope::tenant, false);
    event.device = device;
    event.resource = static_cast<std::uint32_t>(index(setting.resource));
    event.pid = self.pid;
    event.uid = self.uid;
    event.error = EDQUOT;
    event.used = event.limit = setting.limit;
    event.requested = 1;
    self.comm.copy(event.comm, sizeof event.comm - 1);
    return event;
}

std::string ledger_in(const std::string& directory) {
    if (access(limits_path(directory).c_str(), F_OK) == 0) return ledger_path(directory);
    const char* tenant = std::getenv("LEDGER_USER_TENANT");
    return ledger_path(here_path(directory, tenant == nullptr ? std::string(default_tenant) : tenant));
}

}  // namespace

int main(int argc, char** argv) {
    const char* directory = std::getenv("RDMAQUOTA_DIR");
    if (directory == nullptr || argc < 3) give_up("usage: RDMAQUOTA_DIR=DIR ledger_user DEVICE RES=N...");
    auto ledger = Ledger::open(ledger_in(directory));
    if (!ledger) give_up(ledger.error());
    const auto self = identity_of_self();
    auto owner = ledger->claim(self);
    if (!owner) give_up(owner.error());
    const auto device = ledger->device_index(uverbs_identity_of(argv[1]), argv[1]);
    if (!device) give_up("no room for the device");
    std::pair<std::uint64_t, Setting> denial{};
    for (int i = 2; i < argc; ++i) {
        if (std::strncmp(argv[i], "denials=", 8) == 0) {
            for (int n = std::atoi(argv[i] + 8); n > 1; --n)
                ledger->record(denial_of(self, *device, {Resource::qp, 1}));
            continue;
        }
        if (std::strncmp(argv[i], "repeats=", 8) == 0) {
            usleep(500'000);  // a follower has seen the first by now
            for (int n = std::atoi(argv[i] + 8); n > 1; --n)
                ledger->repeat(denial.first, denial_of(self, *device, denial.second));
            continue;
        }
        const auto setting = parse_setting(argv[i]);
        if (!setting) give_up(setting.error());
        charge(ledger.value(), owner.value(), *device, setting.value());
        if (i == 2) denial = {ledger->record(denial_of(self, *device, *setting)), *setting};
    }
    std::puts("ready");
    std::fflush(stdout);
    while (std::getchar() != EOF) continue;
    ledger->retire(owner.value());
}
