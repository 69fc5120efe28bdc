#include "provider/context.hpp"

#include <algorithm>
#include <array>
#include <new>
#include <utility>

#include <unistd.h>

#include <fmt/core.h>

#include "provider/denial.hpp"

namespace rdmaquota::provider {
namespace {

// Contexts by address: chunks that are only ever added, read without a lock. A node opens a few.
struct Chunk {
    struct Entry {
        std::atomic<const ibv_context*> context{nullptr};
        std::atomic<Context*> record{nullptr};
    };
    std::array<Entry, 32> entries;
    std::atomic<Chunk*> next{nullptr};
};

Chunk first_chunk;
std::mutex table_mutex;  // held by who adds or removes, never by who finds

// Closed contexts whose file the kernel still has, and with it their objects; under table_mutex.
Context* closed_contexts = nullptr;

template <class Visit>
Chunk::Entry* find_entry(Visit visit) noexcept {
    for (Chunk* chunk = &first_chunk; chunk; chunk = chunk->next.load())
        for (auto& entry : chunk->entries)
            if (visit(entry)) return &entry;
    return nullptr;
}

void append_chunk() {
    auto* fresh = new Chunk;
    Chunk* last = &first_chunk;
    while (Chunk* next = last->next.load()) last = next;
    last->next.store(fresh);
}

bool is_free(const Chunk::Entry& entry) noexcept { return !entry.record.load(); }

template <class Act>
void for_each_record(Act act) noexcept {
    find_entry([&](const Chunk::Entry& entry) {
        if (!is_free(entry)) act(*entry.record.load());
        return false;
    });
}

}  // namespace

Context* Context::find(const ibv_context* context) noexcept {
    auto* entry = find_entry([&](const Chunk::Entry& e) { return e.context.load(std::memory_order_acquire) == context; });
    return entry ? entry->record.load() : nullptr;
}

void Context::add(const ibv_context* context, Context* record) {
    const std::lock_guard lock(table_mutex);
    Chunk::Entry* entry = nullptr;
    while (!(entry = find_entry(is_free))) append_chunk();
    entry->record.store(record);
    entry->context.store(context, std::memory_order_release);
}

Context* Context::remove(const ibv_context* context) noexcept {
    const std::lock_guard lock(table_mutex);
    auto* entry = find_entry([&](const Chunk::Entry& e) { return e.context.load() == context; });
    if (!entry) return nullptr;
    entry->context.store(nullptr);
    return entry->record.exchange(nullptr);
}

void Context::lock_all() noexcept {
    table_mutex.lock();
    for_each_record([](Context& record) {
        record.resizing_.lock();
        record.receipts_.mutex().lock();
    });
}

void Context::unlock_all() noexcept {
    for_each_record([](Context& record) {
        record.receipts_.mutex().unlock();
        record.resizing_.unlock();
    });
    table_mutex.unlock();
}

// A program that destroyed everything first leaves nothing to watch.
void Context::watch_file(int cmd_fd) noexcept {
    if (pid_ == getpid() && !receipts_.empty()) file_.begin(cmd_fd);
}

void Context::end(std::unique_ptr<Context> context) noexcept {
    if (!context->file_.is_open()) return;
    const std::lock_guard lock(table_mutex);
    context->next_closed_ = closed_contexts;
    closed_contexts = context.release();
}

bool Context::end_closed() noexcept {
    const int saved = errno;
    std::unique_lock lock(table_mutex);
    auto* context = std::exchange(closed_contexts, nullptr);
    lock.unlock();
    bool ended = false;
    while (context) {
        std::unique_ptr<Context> first(context);
        context = first->next_closed_;
        ended |= !first->file_.is_open();
        end(std::move(first));
    }
    errno = saved;
    return ended;
}

Context::Context(std::string device)
    : pid_(getpid()), accounts_(join_accounts()), device_(std::move(device), accounts_) {
    if (device_.deny_errno() == 0) return;
    accounts_.denied = true;
    accounts_.deny_errno = device_.deny_errno();
}

Context::~Context() {
    const bool inherited = pid_ != getpid();
    while (const auto receipt = receipts_.take_any())
        if (!inherited) release(*receipt);
    if (handle_receipt && !inherited) release(*handle_receipt);
    const BusErrorsAllowed allowed;
    for (Port* port = ports_.load(); port;) delete std::exchange(port, port->next);
    if (!inherited) leave_accounts();
}

// Whether account `i` counts new objects at all.
bool Context::counts(std::size_t i) noexcept {
    return device_.usable(i) && accounts_.account[i]->policy().mode() != Mode::off;
}

// False: denied, with errno set. In audit mode what exceeds a limit is charged all the same.
bool Context::charge_account(std::size_t i, Place& place, const Amounts& amounts) noexcept {
    auto& account = *accounts_.account[i];
    const auto& policy = account.policy();
    Limits limits[Amounts::capacity];
    if (policy.mode() != Mode::off) place.limits(policy, i, amounts, limits);
    auto denial = account.ledger().charge(account.owner(), place.index(i), amounts, limits);
    if (denial && end_closed()) denial = account.ledger().charge(account.owner(), place.index(i), amounts, limits);
    if (!denial && !account.ledger().lost()) [[likely]]
        return true;
    const int error = policy.deny_errno();
    const bool admitted = account.ledger().lost() ? account.admits_uncounted() : admit_denied(i, place, amounts, *denial, error);
    if (!admitted) errno = error;
    return admitted;
}

// Reports a denial; true when the mode only asks for the report.
bool Context::admit_denied(std::size_t i, Place& place, const Amounts& amounts, const Denial& denial, int error) noexcept {
    auto& account = *accounts_.account[i];
    const auto mode = account.policy().mode();
    try {
        report(account, place.index(i), place.name(), denial, mode, error);
    } catch (...) {  // no memory: denied without a word
    }
    if (mode != Mode::audit) return false;
    const Limits none[Amounts::capacity];
    return !account.ledger().charge(account.owner(), place.index(i), amounts, none);
}

std::unique_ptr<Receipt> Context::charge(const Amounts& amounts) noexcept {
    const int saved = errno;
    const BusErrorsAllowed allowed;
    std::unique_ptr<Receipt> receipt(new (std::nothrow) Receipt);
    if (!receipt || accounts_.denied) {
        if (receipt) report_unavailable(device_.name(), accounts_.deny_errno);
        errno = receipt ? accounts_.deny_errno : ENOMEM;
        return nullptr;
    }
    for (std::size_t i = 0; i < accounts_.count; ++i)
        if (counts(i)) receipt->charged = static_cast<AccountMask>(receipt->charged | (1U << i));
    if (!charge_accounts(device_, receipt->charged, amounts)) return nullptr;
    receipt->amounts = amounts;
    errno = saved;
    return receipt;
}

bool Context::charge_more(const Receipt& receipt, const Amounts& amounts) noexcept {
    const BusErrorsAllowed allowed;
    return charge_accounts(device_, receipt.charged, amounts);
}

bool Context::charge_accounts(Place& place, AccountMask wanted, const Amounts& amounts) noexcept {
    AccountMask done = 0;
    for (std::size_t i = 0; i < accounts_.count; ++i) {
        if (!(wanted & (1U << i)) || !place.usable(i)) continue;
        if (!charge_account(i, place, amounts)) {
            const int error = errno;
            release_accounts(place, done, amounts);
            errno = error;
            return false;
        }
        done = static_cast<AccountMask>(done | (1U << i));
    }
    return true;
}

void Context::release_part(const Receipt& receipt, const Amounts& amounts) noexcept {
    const BusErrorsAllowed allowed;
    release_accounts(device_, receipt.charged, amounts);
}

void Context::release_accounts(Place& place, AccountMask charged, const Amounts& amounts) noexcept {
    for (std::size_t i = 0; i < accounts_.count; ++i)
        if (charged & (1U << i) && place.usable(i))
            accounts_.account[i]->ledger().release(accounts_.account[i]->owner(), place.index(i), amounts);
}

void Context::release(const Receipt& receipt) noexcept {
    release_part(receipt, receipt.amounts);
    if (receipt.port != 0) unbind(receipt, receipt.port);
}

// Two threads that come first may enter the same port twice, which is two names for the same cells.
Place* Context::port(unsigned number) noexcept {
    for (Port* port = ports_.load(); port; port = port->next)
        if (port->number == number) return &port->place;
    try {
        auto* fresh = new Port{{fmt::format("{}/{}", device_.name(), number), accounts_}, number, ports_.load()};
        while (!ports_.compare_exchange_weak(fresh->next, fresh)) {
        }
        return &fresh->place;
    } catch (...) {  // no memory
        return nullptr;
    }
}

bool Context::bind(const Receipt& receipt, unsigned number) noexcept {
    const BusErrorsAllowed allowed;
    Place* place = port(number);
    const int error = place ? place->deny_errno() : ENOMEM;
    if (error == 0) return charge_accounts(*place, receipt.charged, Amounts{}.add(Resource::qp, 1));
    if (place) report_unavailable(place->name(), error);
    errno = error;
    return false;
}

void Context::unbind(const Receipt& receipt, unsigned number) noexcept {
    const BusErrorsAllowed allowed;
    if (Place* place = port(number)) release_accounts(*place, receipt.charged, Amounts{}.add(Resource::qp, 1));
}

void Context::count_cq_event() noexcept {
    const BusErrorsAllowed allowed;
    for (std::size_t i = 0; i < accounts_.count; ++i)
        if (counts(i)) accounts_.account[i]->ledger().count_cq_event(accounts_.account[i]->owner(), device_.index(i));
}

void Context::count_qp_change(unsigned state, bool failed) noexcept {
    const BusErrorsAllowed allowed;
    for (std::size_t i = 0; i < accounts_.count; ++i)
        if (counts(i))
            accounts_.account[i]->ledger().count_qp_change(accounts_.account[i]->owner(), device_.index(i), state, failed);
}

bool Context::clamps(std::size_t i) noexcept {
    if (!device_.usable(i) || accounts_.account[i]->ledger().lost()) return false;
    const auto& policy = accounts_.account[i]->policy();
    return policy.clamp_device_attr() && policy.mode() == Mode::enforce;
}

bool Context::clamps() noexcept {
    bool any = false;
    for (std::size_t i = 0; i < accounts_.count; ++i) {
        if (!clamps(i)) continue;
        any = true;
        accounts_.account[i]->ledger().reap();  // what the dead held is room
    }
    return any;
}

std::uint64_t Context::room(std::size_t i, Resource resource) noexcept {
    auto& account = *accounts_.account[i];
    Limits limits;
    device_.limits(account.policy(), i, Amounts{}.add(resource, 1), &limits);
    return account.ledger().room(account.owner(), device_.index(i), resource, limits);
}

// What is held counts as well: who asks again after creating some sees the same maximum.
std::uint64_t Context::most(Resource resource) noexcept {
    std::uint64_t least = unlimited;
    for (std::size_t i = 0; i < accounts_.count; ++i) {
        if (!clamps(i)) continue;
        const auto more = std::min(room(i, resource), room(i, Resource::hca_object));
        const auto held = accounts_.account[i]->ledger().usage(accounts_.account[i]->owner().slot(), device_.index(i),
                                                               resource);
        if (more != unlimited) least = std::min(least, held + more);
    }
    return least;
}

std::uint64_t Context::largest(Resource resource) noexcept {
    std::uint64_t least = unlimited;
    for (std::size_t i = 0; i < accounts_.count; ++i)
        if (clamps(i)) least = std::min(least, room(i, resource));
    return least;
}

}  // namespace rdmaquota::provider
