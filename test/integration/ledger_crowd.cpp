// Stands in for many programs with verbs objects, where there is no RDMA, in the tenants of RDMAQUOTA_DIR. Does what
// the lines of its standard input say, answers each with "ok", and gives everything back when its input ends.
//
//   as COMM                                 what is claimed from now on has this name; may hold any byte but a newline
//   charge KEY DEVICE RES=N...              KEY: of a tenant, physics/atlas
//   uncharge KEY DEVICE RES=N...
//   deny KEY DEVICE RES=LIMIT...            records a denial: all of LIMIT is used, one more was asked for
//   again KEY DEVICE RES=LIMIT...           the last denial was met once more
//   deny_share KEY DEVICE RES=SHARE...      the same; the share of a limit above is used up
//   soft KEY DEVICE RES=0...                its use is above a soft limit from now on
//   want KEY DEVICE RES=N...                a use of N was asked for, and not granted
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <iostream>
#include <map>
#include <optional>
#include <sstream>
#include <string>
#include <utility>

#include "policy/limit.hpp"
#include "shm/ledger/ledger.hpp"
#include "shm/paths.hpp"
#include "test/uverbs_identity.hpp"

namespace {

using namespace rdmaquota;

[[noreturn]] void give_up(const std::string& why) {
    std::cerr << "ledger_crowd: " << why << '\n';
    std::exit(1);
}

template <class Value>
Value must(Result<Value> result) {
    if (!result) give_up(result.error());
    return std::move(*result);
}

std::string directory;
Identity self = identity_of_self();
std::map<std::string, Ledger> ledgers;                        // by key
std::map<std::pair<std::string, std::string>, Owner> owners;  // by key and name
std::map<std::string, std::uint64_t> denials;                 // the last one's number, by key

Ledger& ledger_of(const std::string& key) {
    if (const auto found = ledgers.find(key); found != ledgers.end()) return found->second;
    return ledgers.emplace(key, must(Ledger::open(ledger_path(here_path(directory, key))))).first->second;
}

Owner& owner_of(const std::string& key) {
    const std::pair name(key, self.comm);
    if (const auto found = owners.find(name); found != owners.end()) return found->second;
    return owners.emplace(name, must(ledger_of(key).claim(self))).first->second;
}

std::uint64_t now_ns() {
    timespec now{};
    clock_gettime(CLOCK_BOOTTIME, &now);
    return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(now.tv_nsec);
}

Event denial_of(std::uint32_t device, const Setting& setting, Reason reason) {
    Event event{};
    event.kind = EventKind::denied;
    event.scope = event_scope(Scope::tenant, false);
    event.device = device;
    event.resource = static_cast<std::uint32_t>(index(setting.resource));
    event.pid = self.pid;
    event.uid = self.uid;
    event.pid_namespace = self.pid_namespace;
    event.error = EDQUOT;
    event.reason = static_cast<std::uint32_t>(reason);
    event.used = event.limit = setting.limit;
    event.requested = 1;
    self.comm.copy(event.comm, sizeof event.comm - 1);
    return event;
}

void apply(const std::string& what, const std::string& key, const std::string& name, const Setting& setting) {
    auto& ledger = ledger_of(key);
    const auto device = ledger.device_index(uverbs_identity_of(name), name);
    if (!device) give_up("no room for the device");
    Amounts amounts;
    amounts.add(setting.resource, setting.limit);
    const Limits limits;
    const auto record = [&](Reason reason) { denials[key] = ledger.record(denial_of(*device, setting, reason)); };
    if (what == "charge")
        (void)ledger.charge(owner_of(key), *device, amounts, &limits);
    else if (what == "uncharge")
        ledger.uncharge(owner_of(key), *device, amounts);
    else if (what == "deny")
        record(Reason::configured);
    else if (what == "again")
        (void)ledger.repeat(denials[key], denial_of(*device, setting, Reason::configured));
    else if (what == "deny_share")
        record(Reason::grant);
    else if (what == "soft")
        ledger.soft_since(*device, setting.resource) = now_ns();
    else if (what == "want")
        ledger.demand(*device, setting.resource) = setting.limit | std::uint64_t{1} << gate_tag_shift;
    else
        give_up("unknown word " + what);
}

void obey(const std::string& line) {
    if (line.starts_with("as ")) {
        self.comm = line.substr(3);
        return;
    }
    std::istringstream words(line);
    std::string what, key, device;
    words >> what >> key >> device;
    for (std::string word; words >> word;) apply(what, key, device, must(parse_setting(word)));
}

}  // namespace

int main() {
    const rlimit many{65536, 65536};
    setrlimit(RLIMIT_NOFILE, &many);
    const char* given = std::getenv("RDMAQUOTA_DIR");
    if (given == nullptr) give_up("RDMAQUOTA_DIR is not set");
    directory = given;
    for (std::string line; std::getline(std::cin, line);) {
        obey(line);
        std::cout << "ok" << std::endl;
    }
    for (auto& [name, owner] : owners) ledger_of(name.first).retire(owner);
}
