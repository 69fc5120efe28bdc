#include "provider/adoption/adopt.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>

#include <fmt/core.h>

#include "policy/fixed_text.hpp"
#include "provider/adoption/device_table.hpp"
#include "provider/adoption/drivers.hpp"
#include "provider/adoption/stubs.hpp"
#include "provider/adoption/verbs_objects.hpp"
#include "provider/charging/hidden_devices.hpp"
#include "provider/charging/refusal.hpp"
#include "provider/dv/dv.hpp"
#include "provider/host/arena.hpp"
#include "provider/host/log_target.hpp"
#include "provider/ops/ops.hpp"

namespace rdmaquota::provider {
namespace {

struct Adopted {
    const DeviceOps* table;
    DeviceFunctions real;
    const Libibverbs* library;  // the provider's own
    std::uintptr_t base;        // of the provider
};

// An entry is written by a constructor, so by one thread at a time, before its table points here; it is never changed then.
constexpr std::size_t most_providers = 128;
std::array<Adopted, most_providers> adopted;
std::atomic<std::size_t> adopted_count = 0;

struct Copy {
    VerbsObject object;
    std::optional<Libibverbs> library;
    bool configured = false;  // its providers were loaded
};
using Copies = std::array<std::optional<Copy>, 16>;

// The copies of libibverbs in this namespace, those too whose layout is not known. Changed by constructors only, and never destroyed:
// other threads may still run when the process exits.
Copies& known_copies() {
    static auto* const copies = new Copies;
    return *copies;
}

const Adopted* find_adopted(const ibv_device* device) noexcept {
    const void* ops = reinterpret_cast<const VerbsDevice*>(device)->ops;
    for (std::size_t i = 0; i < adopted_count; ++i)
        if (adopted[i].table == ops) return &adopted[i];
    return nullptr;
}

// An op that costs something, of a provider that lacks it, stays as it is: programs probe for it by its errno, which a
// denial must not hide.
bool is_lacking(const Libibverbs& library, Op op, OpPointer real) noexcept {
    const auto kind = op_table[static_cast<std::size_t>(op)].kind;
    return (kind == OpClass::charge_ || kind == OpClass::resize_) && library.stands_in(real);
}

void install(const Libibverbs& library, void* verbs_context, Context& record) noexcept {
    OpPointer ops[op_count] = {};
    for (const auto wrappers : all_ops())
        for (const auto& [op, function] : wrappers) {
            if (!present(library.layout(), op)) continue;
            const auto real = library.op(verbs_context, op);
            record.set_real(op, real);
            if (!is_lacking(library, op, real)) ops[static_cast<std::size_t>(op)] = function;
        }
    library.set_ops(verbs_context, ops);
}

std::unique_ptr<Context> make_record(const ibv_device* device) noexcept {
    try {
        return std::make_unique<Context>(device->name, device->dev_name);
    } catch (...) {
        return nullptr;
    }
}

// Once, when log settings are known: at the first device.
void report_adoption() noexcept try {
    static std::atomic<bool> said = false;
    if (!says(LogLevel::debug) || said.exchange(true)) return;
    std::string names;
    for (std::size_t i = 0; i < adopted_count; ++i) {
        const auto& [table, real, library, base] = adopted[i];
        names += fmt::format("{}{} (private ABI {}, {} ops)", i == 0 ? "" : ", ", table->name, library->layout().pabi,
                             library->layout().ops);
    }
    say(LogLevel::debug, fmt::format("providers that are limited here: {}", names));
} catch (...) {  // no memory: without a word
}

// Puts our ops into a fresh context of a real provider. When that cannot be done, says so and leaves the context as the
// real provider made it.
void* adopt_context(const Libibverbs& library, void* verbs_context, std::unique_ptr<Context> record) noexcept {
    auto* context = library.public_context(verbs_context);
    if (!context) {
        say(LogLevel::error,
            "a device context does not have the layout that this libibverbs expects: it is not limited");
        return verbs_context;
    }
    report_adoption();
    try {
        auto* kept = record.get();
        kept->note_device(*context);
        Context::add(context, kept);
        install(library, verbs_context, *kept);
        kept->begin_reports(*context);
        record.release();
    } catch (...) {  // no memory
    }
    return verbs_context;
}

// The real function closes the descriptor that it fails with; so one more is kept for another try.
void* open_device(const Adopted& adopted_as, ibv_device* device, int cmd_fd, void* private_data, const Context& record) {
    const int spare = ::fcntl(cmd_fd, F_DUPFD_CLOEXEC, 0);
    void* verbs_context = adopted_as.real.alloc_context(device, cmd_fd, private_data);
    const auto is_refused = [&] { return !verbs_context && (errno == EAGAIN || record.is_refusal(errno)); };
    if (spare >= 0 && is_refused())
        call_again(record.device_name(), Kind::handle, errno, [&] {
            verbs_context = adopted_as.real.alloc_context(device, ::fcntl(spare, F_DUPFD_CLOEXEC, 0), private_data);
            return is_refused();
        });
    const KeepErrno keep;
    if (spare >= 0) close(spare);
    return verbs_context;
}

// Takes over cmd_fd as the real function does, and closes it on failure as that does.
void* alloc_context(ibv_device* device, int cmd_fd, void* private_data) {
    const NoCancellation guard;
    const auto* adopted_as = find_adopted(device);
    Context::end_closed();
    auto record = make_record(device);
    const auto charged = record ? record->charge(Kind::handle, 0) : std::nullopt;
    if (!adopted_as || !charged) {
        const int error = charged || !record ? ENOMEM : errno;
        record.reset();
        if (cmd_fd >= 0) close(cmd_fd);
        errno = error;
        return nullptr;
    }
    record->handle_receipt = Receipt{nullptr, 0, Kind::handle, *charged, 0};
    void* verbs_context = open_device(*adopted_as, device, cmd_fd, private_data, *record);
    const KeepErrno keep;
    if (!verbs_context) return record.reset(), nullptr;
    return adopt_context(*adopted_as->library, verbs_context, std::move(record));
}

// An imported context shares the kernel's handle with the one that was charged for it.
void* import_context(ibv_device* device, int cmd_fd) {
    const NoCancellation guard;
    const auto* adopted_as = find_adopted(device);
    void* verbs_context = adopted_as ? adopted_as->real.import_context(device, cmd_fd) : nullptr;
    if (!verbs_context) return nullptr;
    const KeepErrno keep;
    if (auto record = make_record(device)) return adopt_context(*adopted_as->library, verbs_context, std::move(record));
    return verbs_context;
}

bool match_device(SysfsDevice* device) {
    const KeepErrno keep;
    const NoCancellation guard;
    unload_stubs();
    if (!device->match) return false;
    return !is_hidden({fixed_text(device->name), uverbs_number(fixed_text(device->uverbs))});
}

// --- the copies of libibverbs -------------------------------------------------------------------------

// Null where it is not loaded. The handle is kept: what we point to must stay loaded.
void* handle_of(const std::string& path) { return dlopen(path.c_str(), RTLD_LAZY | RTLD_NOLOAD); }

Libibverbs::SetOps set_ops_of(const VerbsObject& object) {
    void* handle = handle_of(object.path);
    return handle ? Libibverbs::set_ops_of(handle, object.pabi) : nullptr;
}

void add_copy(const VerbsObject& object) {
    auto& copies = known_copies();
    const auto is_known = [&](const auto& copy) { return !copy || copy->object.base == object.base; };
    const auto place = std::find_if(copies.begin(), copies.end(), is_known);
    if (place == copies.end() || *place) return;
    *place = Copy{object, std::nullopt};
    auto probed = Libibverbs::probe(object.pabi, set_ops_of(object));
    if (probed)
        (*place)->library = *probed;
    else
        say(LogLevel::error, fmt::format("{}: {}; what programs open by it is not limited", object.path, probed.error()));
}

const Libibverbs* library_of(const std::string& driver) {
    const auto& copies = known_copies();
    const bool alone = copies[0] && !copies[1];
    void* handle = alone ? nullptr : handle_of(driver);
    for (const auto& copy : copies)
        if (copy && copy->library && (alone || copy->library->has(Libibverbs::set_ops_of(handle, copy->object.pabi))))
            return &*copy->library;
    return nullptr;
}

// --- the providers --------------------------------------------------------------------------------------

bool is_adopted(std::uintptr_t base) noexcept {
    for (std::size_t i = 0; i < adopted_count; ++i)
        if (adopted[i].base == base) return true;
    return false;
}

Result<void> adopt(MemoryFile& memory, const FoundOps& found) {
    const auto count = adopted_count.load();
    const auto* library = library_of(found.path);
    if (count == adopted.size()) return Error{fmt::format("there are more than {} providers", most_providers)};
    if (!library) return Error{"its libibverbs is not known"};
    adopted[count] = {found.table, {found.table->match_device, found.table->alloc_context, found.table->import_context}, library, found.base};
    adopted_count = count + 1;
    auto replaced = replace_functions(memory, found, {match_device, alloc_context, import_context});
    if (!replaced) --adopted_count;
    return replaced;
}

void adopt_named(MemoryFile& memory, const std::string& name, const Result<FoundOps>& found) {
    const auto done = found ? adopt(memory, *found) : Result<void>(Error{found.error()});
    if (!done) return say(LogLevel::info, fmt::format("provider {} is left alone and not limited: {}", name, done.error()));
    if (std::string_view(found->table->name) != "mlx5") return;
    if (const auto own = adopt_mlx5dv(memory, handle_of(found->path)); !own)
        say(LogLevel::info, fmt::format("objects made by provider {}'s own calls are not limited: {}", name, own.error()));
}

// Providers that are loaded, by libibverbs, by the program or with it. Something else that needs the private interface, as pyverbs
// does, has no device table.
void adopt_object(MemoryFile& memory, VerbsObject& object) {
    if (object.is_library || is_adopted(object.base)) return;
    const auto found = find_device_ops(std::move(object.image), object.path, object.base);
    if (found) adopt_named(memory, object.path, found);
}

struct NamedDriver {
    std::string name;
    void* handle;
};

// Loads what the copy is configured to have and what is not adopted yet.
void load_configured(const Copy& copy, const std::vector<VerbsObject>& objects, std::vector<NamedDriver>& drivers) {
    const auto directories = directories_of(copy.object);
    for (const auto& name : driver_names(directories.configuration)) {
        const auto path = driver_path(name, copy.object.pabi, directories.providers);
        const auto loaded = std::ranges::find(objects, path, &VerbsObject::path);
        if (loaded != objects.end() && is_adopted(loaded->base)) continue;
        if (void* handle = load_driver(name, copy.object.pabi, directories.providers)) drivers.push_back({name, handle});
    }
}

// A provider that is loaded may need another libibverbs, which is a copy too then.
void adopt_all(bool configured) {
    MemoryFile memory;
    std::vector<NamedDriver> drivers;
    for (bool more = true; more;) {
        more = false;
        auto objects = verbs_objects();
        for (const auto& object : objects)
            if (object.is_library) add_copy(object);
        if (!known_copies()[0]) return;
        for (auto& object : objects) adopt_object(memory, object);
        for (auto& copy : known_copies()) {
            if (!configured || !copy || !copy->library || std::exchange(copy->configured, true)) continue;
            const auto before = drivers.size();
            load_configured(*copy, objects, drivers);
            more = more || drivers.size() != before;
        }
    }
    for (const auto& [name, handle] : drivers)
        if (!is_adopted(load_address(handle))) adopt_named(memory, name, find_device_ops(handle));
}

// A forked child must not find our locks held by a thread that it does not have. All that these touch is in static storage or in
// the arena: the program may withhold pages of its heap from its children.
void before_fork() {
    Context::lock_all();
    arena::lock();
}
void after_fork() {
    arena::unlock();
    Context::unlock_all();
}

}  // namespace

void adopt_loaded() noexcept try {
    pthread_atfork(before_fork, after_fork, after_fork);
    if (!has_stub()) adopt_all(false);
} catch (...) {  // no memory: the providers stay as they are
}

void adopt_configured(void* stub) noexcept try {
    note_stub(stub);
    adopt_all(true);
} catch (...) {  // no memory: the providers stay as they are
}

}  // namespace rdmaquota::provider
