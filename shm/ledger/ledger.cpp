// Creates, opens and replaces ledgers, and claims slots. Charging is in steps.hpp and charge.cpp, repair in reap.cpp,
// listings in view.cpp.
#include "shm/ledger/ledger.hpp"

#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <utility>

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <fmt/core.h>

#include "shm/atomic.hpp"
#include "shm/lock_file.hpp"
#include "shm/open_inside.hpp"
#include "shm/paths.hpp"
#include "shm/ledger/ledger_file.hpp"
#include "shm/failpoint.hpp"

namespace rdmaquota {
namespace {

constexpr std::size_t least_room = 1 << 20;  // bytes that are free where a ledger is made

Result<void> make_directory(const std::string& path, unsigned mode) {
    if (mkdir(path.c_str(), 0700) != 0)
        return Error{fmt::format("cannot create the directory {}: {}", path, std::strerror(errno))};
    return set_rights(path, {mode, {}, {}, {}});
}

Result<void> fill_directory(const std::string& path, const FileRights& rights) {
    for (const auto& directory : {path, lock_directory(path)})
        if (auto made = make_directory(directory, directory_mode(rights)); !made) return made;
    for (std::uint32_t slot = 0; slot < owner_slots; slot += owners_per_lock_file)
        if (auto made = create_file(lock_path(path, slot), rights); !made) return made;
    if (auto made = create_ledger_file(data_path(path)); !made) return made;
    return set_rights(data_path(path), rights);
}

bool exists(const std::string& path) noexcept { return access(path.c_str(), F_OK) == 0; }

// Of two ledgers moved away within one second the later one gets a number.
std::string unused_name(const std::string& wanted) {
    std::string name = wanted;
    for (int i = 1; exists(name); ++i) name = fmt::format("{}.{}", wanted, i);
    return name;
}

void remove_directory(const std::string& path) noexcept {
    if (!exists(path)) return;
    for (std::uint32_t slot = 0; slot < owner_slots; slot += owners_per_lock_file)
        unlink(lock_path(path, slot).c_str());
    rmdir(lock_directory(path).c_str());
    unlink(data_path(path).c_str());
    rmdir(path.c_str());
}

// Lack of permission or of descriptors says nothing about the ledger.
Result<bool> is_usable(const std::string& path) {
    const int fd = ::open(data_path(path).c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd >= 0) close(fd);
    else if (errno != ENOENT && errno != ELOOP && errno != EISDIR)
        return Error{fmt::format("cannot open {}: {}", data_path(path), std::strerror(errno))};
    return static_cast<bool>(inspect_ledger_file(data_path(path)));
}

// Whoever may write a file may have made it longer. What is beyond a ledger's length nobody reads, but it takes room.
void trim(const std::string& path) noexcept {
    const auto cut = [](const std::string& file, std::size_t bytes) {
        const int fd = open_inside(file, O_RDWR);
        if (fd < 0) return;
        struct stat status {};
        if (fstat(fd, &status) == 0 && static_cast<std::size_t>(status.st_size) > bytes)
            (void)!ftruncate(fd, static_cast<off_t>(bytes));
        close(fd);
    };
    cut(data_path(path), ledger_file_bytes);
    for (std::uint32_t slot = 0; slot < owner_slots; slot += owners_per_lock_file) cut(lock_path(path, slot), 0);
}

// The pages of a new ledger are first written through a mapping, where a full file system would end this process.
Result<void> check_room(const std::string& path) {
    struct statvfs status {};
    const auto parent = path.substr(0, path.rfind('/'));
    if (statvfs(parent.c_str(), &status) != 0 || status.f_bavail * status.f_frsize >= least_room) return {};
    return Error{fmt::format("the file system of {} is full: there is no room for a new ledger", parent)};
}

// A directory with a new ledger, beside `path`.
Result<std::string> build_beside(const std::string& path, const FileRights& rights) {
    if (auto room = check_room(path); !room) return Error{room.error()};
    auto temporary = fmt::format("{}.{}.tmp", path, getpid());
    remove_directory(temporary);
    const auto filled = fill_directory(temporary, rights);
    if (filled) return temporary;
    remove_directory(temporary);
    return Error{filled.error()};
}

Error cannot(const char* what, const std::string& path, int error) {
    return {fmt::format("cannot {} the ledger {}: {}", what, path, std::strerror(error))};
}

}  // namespace

Result<void> Ledger::create(const std::string& path, const LedgerAccess& access) {
    if (exists(data_path(path))) return {};
    const auto temporary = build_beside(path, rights_for(access));
    if (!temporary) return Error{temporary.error()};
    if (std::rename(temporary->c_str(), path.c_str()) == 0) return {};
    const int error = errno;
    remove_directory(*temporary);
    if (exists(data_path(path))) return {};  // another process was faster
    return cannot("create", path, error);
}

Result<std::string> Ledger::replace(const std::string& path, const LedgerAccess& otherwise) {
    const auto old = rights_of(data_path(path));
    trim(path);
    const auto temporary = build_beside(path, old ? *old : rights_for(otherwise));
    if (!temporary) return temporary;
    if (renameat2(AT_FDCWD, temporary->c_str(), AT_FDCWD, path.c_str(), RENAME_EXCHANGE) != 0) {
        const int error = errno;
        remove_directory(*temporary);
        return cannot("replace", path, error);
    }
    const auto aside = unused_name(fmt::format("{}.unusable.{}", path, time(nullptr)));
    if (std::rename(temporary->c_str(), aside.c_str()) == 0) return aside;
    return *temporary;
}

void Ledger::cut_growth(const std::string& path) noexcept { trim(path); }

void Ledger::remove(const std::string& aside) noexcept { remove_directory(aside); }

Result<std::string> Ledger::replace_unusable(const std::string& path, const LedgerAccess& access) {
    if (!exists(path)) {
        if (const auto made = create(path, access); !made) return Error{made.error()};
        return std::string();
    }
    const auto usable = is_usable(path);
    if (!usable) return Error{usable.error()};
    return *usable ? std::string() : replace(path, access);
}

Result<Ledger> Ledger::open(const std::string& path) {
    auto mapping = map_ledger_file(data_path(path));
    if (!mapping) return Error{mapping.error()};
    return Ledger(path, std::move(*mapping));
}

Ledger::Ledger(std::string path, Mapping mapping) noexcept
    : path_(std::move(path)), mapping_(std::move(mapping)), data_(ledger_data(mapping_)) {}

bool Ledger::damaged() const { return lost() || !check_mapped_ledger(data_path(path_), mapping_); }

bool Ledger::in_place() const noexcept { return mapping_.is_of(data_path(path_).c_str()); }

Owner::Owner(Owner&& other) noexcept
    : slot_(other.slot_), hold_(std::exchange(other.hold_, nullptr)), ops_(other.ops_), usage_(other.usage_) {}

Owner& Owner::operator=(Owner&& other) noexcept {
    std::swap(slot_, other.slot_);
    std::swap(hold_, other.hold_);
    std::swap(ops_, other.ops_);
    std::swap(usage_, other.usage_);
    return *this;
}

Owner::~Owner() { LockFile::let_go(hold_); }

// Takes the lowest free slot, so that passes over all slots stay short. Each newcomer also reaps the owners of one lock
// file, in turn, so that the dead do not pile up where nobody is ever denied.
Result<Owner> Ledger::claim(const Identity& identity) {
    const auto groups = (slots_used() + owners_per_lock_file - 1) / owners_per_lock_file;
    if (groups > 0 && in_place()) reap_group(static_cast<std::uint32_t>(add(data_->header.next_group, 1) % groups));
    for (int round = 0; round < 2; ++round) {
        std::optional<Owner> owner;
        for (std::uint32_t slot = 0; slot < owner_slots; ++slot) {
            if (load(data_->states[slot]) == SlotState::live) continue;
            if (try_claim(slot, identity, owner)) return std::move(*owner);
        }
        if (reap() == 0) break;
    }
    const auto locks = LockFile::open(lock_path(path_, 0));
    return Error{fmt::format("cannot join the ledger {}: {}", path_,
                             locks ? fmt::format("all {} owner slots are taken by running processes", owner_slots)
                                   : locks.error())};
}

// A forked child has its parent's mappings, and a slot that is not its own by its pid. A lock that others hold is not ours by what they
// write into the slot.
Result<Owner> Ledger::join(const Identity& identity) {
    for (std::uint32_t slot = 0; slot < slots_used() && in_place(); ++slot) {
        const auto& owner = data_->slots[slot].owner;
        if (load(owner.pid) != identity.pid || load(owner.start_time) != identity.start_time) continue;
        if (load(data_->states[slot]) != SlotState::live) continue;
        const auto file = LockFile::open(lock_path(path_, slot));
        if (void* hold = file ? file->hold_again(slot) : nullptr) return Owner(slot, hold, *data_);
    }
    return claim(identity);
}

bool Ledger::try_claim(std::uint32_t number, const Identity& identity, std::optional<Owner>& owner) noexcept {
    const auto file = LockFile::open(lock_path(path_, number));
    if (!file || !file.value().try_reap(number)) return false;
    failpoint("claim_lock");
    // The previous holder of the lock may have claimed the slot and died meanwhile.
    if (load(data_->states[number]) == SlotState::live) return false;
    void* hold = file.value().hold(number);
    if (!hold) return false;
    file.value().own(number);
    failpoint("claim_own");

    auto& slot = data_->slots[number];
    SlotOwner before;
    look(before, slot.owner);
    SlotOwner now{identity.pid, 0, identity.start_time, identity.uid, before.claims + 1, {}};
    identity.comm.copy(now.comm, sizeof now.comm - 1);
    show(slot.owner, now);
    add(data_->header.claims, 1);
    failpoint("claim_count");
    raise_to(data_->header.slots_used, number + 1);
    failpoint("claim_used");
    store(data_->states[number], SlotState::live);
    failpoint("claim_live");
    owner.emplace(Owner(number, hold, *data_));
    return true;
}

// A forked child that inherited the mapping may still charge; the slot and its usage are the child's then.
void Ledger::retire(Owner& owner) noexcept {
    LockFile::let_go(std::exchange(owner.hold_, nullptr));
    failpoint("let_go");
    if (!in_place()) return;
    const auto file = LockFile::open(lock_path(path_, owner.slot()));
    if (file) reap_slot(file.value(), owner.slot(), false);
}

// FNV-1a; the lowest bit is set for a port. Two identities with the same hash would share an entry.
static std::uint64_t key_of(std::string_view identity) noexcept {
    std::uint64_t key = 0xcbf29ce484222325;
    for (const char c : identity) key = (key ^ static_cast<unsigned char>(c)) * 0x100000001b3;
    key = (key & ~std::uint64_t{1}) | (is_port(identity) ? 1 : 0);
    return key ? key : 2;
}

// Writes only what differs, so that processes do not dirty one another's cache line.
template <class Text>
static void show_text(Text& shared, std::string_view text) noexcept {
    Text wanted{}, there;
    text.copy(wanted.text, sizeof wanted.text - 1);
    look(there, shared);
    if (std::memcmp(&there, &wanted, sizeof there) != 0) show(shared, wanted);
}

std::optional<std::uint32_t> Ledger::device_index(std::string_view identity, std::string_view name) noexcept {
    const auto key = key_of(identity);
    for (std::uint32_t i = 0; i < device_slots; ++i) {
        auto& entry = data_->devices[i];
        std::uint64_t found = 0;
        if (!compare_exchange(entry.key, found, key) && found != key) continue;
        failpoint("appear");
        show_text(entry.identity, identity);
        show_text(entry.name, name.empty() ? identity : name);
        return i;
    }
    return std::nullopt;
}

namespace {

// The thread's, for where /proc cannot be read.
std::string own_name() {
    char name[16] = {};  // TASK_COMM_LEN
    ::prctl(PR_GET_NAME, name);
    return name;
}

}  // namespace

// /proc/self/stat: pid (comm) state … field 22 is the start time (proc_pid_stat(5)).
Identity identity_of_self() {
    Identity identity{static_cast<std::uint32_t>(getpid()), getuid(), 0, {}, 0};
    struct stat space {};
    if (::stat("/proc/self/ns/pid", &space) == 0) identity.pid_namespace = space.st_ino;
    identity.comm = own_name();
    std::string text(1024, '\0');  // not on the host program's stack
    const int fd = ::open("/proc/self/stat", O_RDONLY | O_CLOEXEC);
    if (fd < 0) return identity;
    const auto length = read(fd, text.data(), text.size());
    close(fd);
    text.resize(length > 0 ? static_cast<std::size_t>(length) : 0);
    const auto opening = text.find('(');
    auto at = text.rfind(')');
    if (opening == text.npos || at == text.npos) return identity;
    identity.comm = text.substr(opening + 1, at - opening - 1);
    for (int field = 3; field <= 22 && at != text.npos; ++field) at = text.find(' ', at + 1);
    if (at != text.npos) std::from_chars(text.data() + at + 1, text.data() + text.size(), identity.start_time);
    return identity;
}

}  // namespace rdmaquota
