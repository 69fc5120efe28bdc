#include "provider/adoption/adopt.hpp"

#include <array>
#include <atomic>
#include <cerrno>
#include <memory>
#include <optional>
#include <string_view>

#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>

#include <fmt/core.h>

#include "provider/adoption/device_table.hpp"
#include "provider/adoption/drivers.hpp"
#include "provider/charging/refusal.hpp"
#include "provider/dv/dv.hpp"
#include "provider/host/arena.hpp"
#include "provider/host/log_target.hpp"
#include "provider/ops/ops.hpp"

namespace rdmaquota::provider {
namespace {

struct Adopted {
    const DeviceOps* table;
    ContextFunctions real;
};

// Written by the constructor only, before any table points here.
constexpr std::size_t most_providers = 64;
std::array<Adopted, most_providers> adopted;
std::size_t adopted_count = 0;
std::optional<Libibverbs> library;

const Adopted* find_adopted(const ibv_device* device) noexcept {
    const void* ops = reinterpret_cast<const VerbsDevice*>(device)->ops;
    for (std::size_t i = 0; i < adopted_count; ++i)
        if (adopted[i].table == ops) return &adopted[i];
    return nullptr;
}

// An op that costs something, of a provider that lacks it, stays as it is: programs probe for it by its errno, which a
// denial must not hide.
bool is_lacking(Op op, OpPointer real) noexcept {
    const auto kind = op_table[static_cast<std::size_t>(op)].kind;
    return (kind == OpClass::charge_ || kind == OpClass::resize_) && library->stands_in(real);
}

void install(void* verbs_context, Context& record) noexcept {
    OpPointer ops[op_count] = {};
    for (const auto wrappers : all_ops())
        for (const auto& [op, function] : wrappers) {
            if (!present(library->layout(), op)) continue;
            const auto real = library->op(verbs_context, op);
            record.set_real(op, real);
            if (!is_lacking(op, real)) ops[static_cast<std::size_t>(op)] = function;
        }
    library->set_ops(verbs_context, ops);
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
    for (std::size_t i = 0; i < adopted_count; ++i) names += fmt::format("{}{}", i == 0 ? "" : ", ", adopted[i].table->name);
    say(LogLevel::debug, fmt::format("providers that are limited here: {}; libibverbs has {} ops (private ABI {})", names,
                                     library->layout().ops, library->layout().pabi));
} catch (...) {  // no memory: without a word
}

// Puts our ops into a fresh context of a real provider. When that cannot be done, says so and leaves the context as the
// real provider made it.
void* adopt_context(void* verbs_context, std::unique_ptr<Context> record) noexcept {
    auto* context = library->public_context(verbs_context);
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
        install(verbs_context, *kept);
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
    return adopt_context(verbs_context, std::move(record));
}

// An imported context shares the kernel's handle with the one that was charged for it.
void* import_context(ibv_device* device, int cmd_fd) {
    const NoCancellation guard;
    const auto* adopted_as = find_adopted(device);
    void* verbs_context = adopted_as ? adopted_as->real.import_context(device, cmd_fd) : nullptr;
    if (!verbs_context) return nullptr;
    const KeepErrno keep;
    if (auto record = make_record(device)) return adopt_context(verbs_context, std::move(record));
    return verbs_context;
}

Result<void> adopt(MemoryFile& memory, void* handle) {
    if (adopted_count == adopted.size()) return Error{fmt::format("there are more than {} providers", most_providers)};
    auto found = find_device_ops(handle);
    if (!found) return Error{found.error()};
    adopted[adopted_count++] = {found->table, {found->table->alloc_context, found->table->import_context}};
    auto replaced = replace_context_functions(memory, *found, {alloc_context, import_context});
    if (!replaced) --adopted_count;
    return replaced;
}

// Of the provider that has just been adopted.
Result<void> adopt_own_calls(const Driver& driver) {
    const std::string_view name = adopted[adopted_count - 1].table->name;
    return name == "mlx5" ? adopt_mlx5dv(driver.handle, driver.fresh ? Callers::none : Callers::any) : Result<void>();
}

void adopt_all() {
    auto found = Libibverbs::find();
    if (!found) return say(LogLevel::error, found.error() + "; nothing is limited in this process");
    library = *found;
    MemoryFile memory;
    const auto directories = provider_directories(libibverbs_directory());
    for (const auto& name : driver_names()) {
        const auto driver = load_driver(name, library->layout().pabi, directories);
        if (!driver.handle) continue;
        if (const auto done = adopt(memory, driver.handle); !done)
            say(LogLevel::info, fmt::format("provider {} is left alone and not limited: {}", name, done.error()));
        else if (const auto own = adopt_own_calls(driver); !own)
            say(LogLevel::info,
                fmt::format("objects made by provider {}'s own calls are not limited: {}", name, own.error()));
    }
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

void adopt_providers() noexcept {
    try {
        pthread_atfork(before_fork, after_fork, after_fork);
        adopt_all();
    } catch (...) {  // no memory: the providers stay as they are
    }
}

}  // namespace rdmaquota::provider
