// rdmaquota repair: reaps the dead, corrects sums, replaces a ledger that cannot be used.
#include <unistd.h>

#include <memory>

#include <fmt/core.h>

#include "policy/printable.hpp"
#include "shm/ledger/ledger.hpp"
#include "shm/paths.hpp"
#include "tools/common/tenants/tenant_files.hpp"
#include "tools/common/tenants/tenants.hpp"
#include "tools/rdmaquota/command.hpp"

namespace rdmaquota {
namespace {

struct Repaired {
    unsigned reaped = 0;
    unsigned corrected = 0;
    unsigned busy = 0;  // sums that never came to rest
};

Repaired repair(Ledger& ledger) {
    Repaired result;
    result.reaped = ledger.reap();
    for (const auto& device : ledger.devices())
        for (const auto& row : resource_table) {
            const auto view = ledger.reconcile(device.index, row.id);
            result.corrected += view == Ledger::View::corrected;
            result.busy += view == Ledger::View::not_quiescent;
        }
    return result;
}

// Running programs keep the ledger that they have open.
void name_programs(const Ledger& ledger) {
    for (const auto& owner : ledger.owners())
        fmt::print("  not counted in the new one until started again: {} ({})\n", owner.identity.pid,
                   printable(owner.identity.comm));
}

struct Options {
    std::string tenant;
    bool fresh = false;
};

int replace(const std::string& path) {
    auto old = Ledger::open(path);
    if (old) old->reap();
    const auto aside = Ledger::replace(path);
    if (!aside) return failed(aside.error());
    fmt::print("a new ledger is in place; the old one is {}\n", *aside);
    if (old) name_programs(*old);
    return status_done;
}

int report(const Repaired& done) {
    if (done.reaped + done.corrected + done.busy == 0) fmt::print("nothing to repair\n");
    if (done.reaped > 0) fmt::print("uncharged what {} ended processes held\n", done.reaped);
    if (done.corrected > 0) fmt::print("corrected {} sums\n", done.corrected);
    if (done.busy == 0) return status_done;
    return failed(fmt::format("{} sums were never seen at rest: a program is stopped in mid-operation; continue or end "
                              "it and try again", done.busy));
}

int run(const TenantPlace& place, const Options& options) {
    const auto path = ledger_path(place.here);
    if (::access(path.c_str(), F_OK) != 0)
        return failed(fmt::format("there is no ledger {}: run 'rdmaquota reload' to make it", path));
    free_room(place.here);
    const bool gone = ::access(path.c_str(), F_OK) != 0;
    if (options.fresh && !gone) return replace(path);
    // Of a ledger whose rights cannot be read, root's alone; `reload` gives it to the tenant's members.
    const bool everyones = place.key == default_tenant || place.key.empty();
    const auto aside = Ledger::replace_unusable(path, everyones ? LedgerAccess::everyone() : LedgerAccess{});
    if (!aside) return failed(aside.error());
    if (gone) {
        fmt::print("the file system of the tenant's ledgers was full; there is another, with a new ledger{}\n",
                   everyones ? "" : "; run 'rdmaquota reload' to give it to the tenant's members");
        return status_done;
    }
    if (!aside->empty()) {
        fmt::print("the ledger could not be used; it was moved to {} and a new one made\n", *aside);
        return status_done;
    }
    auto ledger = Ledger::open(path);
    if (!ledger) return failed(ledger.error());
    const auto done = repair(*ledger);
    return ledger->lost() ? failed(fmt::format("{} was cut short just now; try again", path)) : report(done);
}

int run(const Options& options, const Session& session) {
    const auto place = find_tenant(session.directory, options.tenant);
    if (!place) return failed(place.error());
    return run(*place, options);
}

}  // namespace

void add_repair(CommandLine& line, const Session& session) {
    const auto options = std::make_shared<Options>();
    auto command = line.command("repair", "Uncharge what the dead held, correct sums, replace a broken ledger");
    command.optional_word("TENANT", options->tenant, "Whose ledger; that of the tenant 'default' unless named");
    command.flag("--new", options->fresh, "Replace the ledger even if it can be used, such as when its figures are falsified");
    command.action([options, &session] { return run(*options, session); });
}

}  // namespace rdmaquota
