#include "tools/rdmaquota/commands/unheld.hpp"

#include <sys/inotify.h>
#include <unistd.h>

#include <algorithm>
#include <sstream>

#include <fmt/core.h>

#include "shm/paths.hpp"
#include "tools/common/process/node_processes.hpp"
#include "tools/common/process/open_devices.hpp"
#include "tools/common/process/process_stat.hpp"
#include "tools/common/process/verbs_copies.hpp"
#include "tools/common/text/directory_names.hpp"
#include "tools/common/text/file_text.hpp"

namespace rdmaquota {
namespace {

constexpr const char* device_files = "/dev/infiniband";
constexpr int first_pause_ms = 20, longest_pause_ms = 500;
// Some ten seconds. Before it opens the ledger, a program may wait a second for a template's tenant of the node's own policy.
constexpr unsigned looks_until_judged = 24;
constexpr std::size_t most_descendants = 65536;

std::vector<std::uint32_t> children_of(std::uint32_t pid) {
    std::vector<std::uint32_t> children;
    const auto threads = fmt::format("/proc/{}/task", pid);
    for (const auto& thread : directory_names(threads)) {
        std::istringstream words(file_text(fmt::format("{}/{}/children", threads, thread)));
        for (std::uint32_t child = 0; words >> child;) children.push_back(child);
    }
    return children;
}

std::vector<std::uint32_t> descendants() {
    auto found = children_of(static_cast<std::uint32_t>(::getpid()));
    for (std::size_t i = 0; i < found.size() && found.size() < most_descendants; ++i)
        for (const auto child : children_of(found[i])) found.push_back(child);
    return found;
}

std::string library_words(const std::string& maps) {
    if (maps.empty()) return "and ended before its libraries were seen";
    const auto copies = verbs_copies(maps);
    return copies.empty() ? "without a libibverbs (statically linked, or by the kernel's interface)" : "through " + copies.front();
}

}  // namespace

UnheldProcesses::UnheldProcesses(const std::string& directory)
    : ledger_path_(ledger_path(directory)), ledger_(Ledger::open(ledger_path_)), claims_(owner_slots) {
    if (!ledger_) return;
    add_lock_files(lock_files_, ledger_path_, 0);
    notices_ = ::inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
    watch_devices();
}

UnheldProcesses::~UnheldProcesses() {
    if (notices_ >= 0) ::close(notices_);
}

// A file that is watched already stays watched.
void UnheldProcesses::watch_devices() {
    ::inotify_add_watch(notices_, device_files, IN_CREATE);
    for (const auto& name : directory_names(device_files))
        if (name.starts_with("uverbs")) ::inotify_add_watch(notices_, fmt::format("{}/{}", device_files, name).c_str(), IN_OPEN);
}

void UnheldProcesses::read_claims() {
    const auto owners = ledger_->last_owners();
    for (std::size_t slot = 0; slot < owners.size(); ++slot) {
        const auto& owner = owners[slot];
        if (owner.claims == claims_[slot]) continue;
        unseen_ += owner.claims - claims_[slot] - 1;
        claims_[slot] = owner.claims;
        charged_.insert({owner.pid, owner.start_time});
    }
}

// Who it is comes first, and then the device: a short program may end at any moment. A child that was forked shares its parent's slot.
void UnheldProcesses::look_at(std::uint32_t pid) {
    const auto directory = fmt::format("/proc/{}", pid);
    const Process process{pid, start_time_of(directory)};
    if (const auto known = settled_.find(pid); process.start == 0 || (known != settled_.end() && known->second == process.start)) return;
    const auto inner = inner_pid(directory);
    const Process noted{inner != 0 ? inner : pid, process.start};
    const auto devices = open_devices(static_cast<int>(pid));
    if (!devices || devices->empty()) return;
    const auto maps = file_text(directory + "/maps");
    if (charged_.contains(noted) || !slots_in_maps(maps, lock_files_).empty()) {
        settled_[pid] = process.start;
        return;
    }
    auto& suspect = suspects_[process];
    suspect.open = true;
    if (suspect.looks++ == 0) suspect.unseen = unseen_;
    suspect.noted = noted;
    // Read at each look: the program may have begun anew, by exec.
    auto program = file_text(directory + "/comm");
    program.resize(std::min(program.find('\n'), program.size()));
    suspect.text = fmt::format("{} (pid {}) opened {} {}", program, pid, devices->front().name, library_words(maps));
}

void UnheldProcesses::judge(bool ended) {
    for (auto entry = suspects_.begin(); entry != suspects_.end();) {
        const auto& [process, suspect] = *entry;
        const bool charged = charged_.contains(suspect.noted);
        const bool due = ended || !suspect.open || suspect.looks >= looks_until_judged;
        if (due && !charged && unseen_ == suspect.unseen) unheld_.push_back(suspect.text);
        if (due) settled_[process.pid] = process.start;
        entry = due || charged ? suspects_.erase(entry) : std::next(entry);
    }
}

int UnheldProcesses::look() {
    if (notices_ < 0) return -1;
    char notices[4096];
    bool any = false;
    while (::read(notices_, notices, sizeof notices) > 0) any = true;
    if (any) watch_devices();
    read_claims();
    for (auto& [process, suspect] : suspects_) suspect.open = false;
    const auto processes = descendants();
    for (auto pid = processes.rbegin(); pid != processes.rend(); ++pid) look_at(*pid);
    read_claims();
    judge(false);
    unsigned looks = looks_until_judged;
    for (const auto& [process, suspect] : suspects_) looks = std::min(looks, suspect.looks);
    return suspects_.empty() ? -1 : std::min(first_pause_ms << std::min(looks, 5U), longest_pause_ms);
}

std::vector<std::string> UnheldProcesses::conclude() {
    look();
    judge(true);
    return unheld_;
}

}  // namespace rdmaquota
