// One open device context: the real provider's ops, the accounts that its objects are charged to, and their receipts.
//
// What a wrapped verb does is here and in provider/ops/wrap.hpp: reserve room for a receipt, charge, call the real
// provider, file the receipt. What finds no room at once, or limits that have changed, goes on in context.cpp.
#pragma once

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include <infiniband/verbs.h>

#include "provider/abi/libibverbs.hpp"
#include "provider/charging/accounts.hpp"
#include "provider/charging/device_port.hpp"
#include "provider/charging/receipts.hpp"
#include "provider/host/cancellation.hpp"
#include "provider/host/file_watch.hpp"
#include "provider/host/process.hpp"

namespace rdmaquota::provider {

class Context {
public:
    // Joins the accounts of this process. `uverbs` is the name of the device's uverbs device. Throws only std::bad_alloc.
    Context(std::string device, std::string uverbs);
    ~Context();  // uncharges what the receipts say, unless this is a forked child's copy
    Context(const Context&) = delete;

    const std::string& device_name() const noexcept { return device_.name(); }

    // --- the table of open contexts (context_table.cpp). `find` takes no lock.
    static Context* find(const ibv_context* context) noexcept;
    static void add(const ibv_context* context, Context* record);
    static Context* remove(const ibv_context* context) noexcept;

    // Takes out the receipt of an object that does not tell its context, and its context; null when none has one.
    static std::pair<Context*, Receipt> take_receipt(const void* object) noexcept;

    // --- removal. When a device is removed whose driver can be unplugged, the kernel frees all objects of its contexts at once, and
    // fails whatever is asked of them later with EIO (ib_uverbs_free_hw_resources in the kernel's uverbs_main.c).
    void note_device(const ibv_context& verbs) noexcept;  // as it is when the context was opened

    // Limits may be percentages of what the device reports, which can be asked from now on: its real ops are set.
    void begin_reports(ibv_context& verbs) noexcept {
        report_.set_device(&verbs, real(Op::query_device_ex));
        device_.forget_limits();
    }

    // --- closing. What the kernel still has of a closed context stays charged until its open file is gone.
    void watch_file(const ibv_context& verbs) noexcept;          // before the real provider closes it
    static void end(std::unique_ptr<Context> context) noexcept;  // after
    // Ends the closed contexts whose files are gone, and uncharges those whose device was removed. When another thread is doing so,
    // waits for it. Keeps errno.
    static void end_closed() noexcept;

    // Call them around fork: they take and release every lock of every context.
    static void lock_all() noexcept;
    static void unlock_all() noexcept;

    // --- charging, in all accounts or none. On denial errno is what the program shall see, and the denial has been
    // logged and recorded. Keeps errno otherwise.

    // Takes the command's part of all rates, and waits until it may go on. False: denied, as a charge is. Call it with no lock held.
    bool pace(Command command) { return (!device_.has_rates() && device_.limits_hold()) || wait_for_rates(command); }

    // For a new object: the accounts that were charged, for its receipt; nothing on denial.
    template <Kind kind>
    std::optional<AccountMask> charge(std::uint64_t size);
    std::optional<AccountMask> charge(Kind kind, std::uint64_t size);
    void uncharge(const Receipt& receipt) noexcept;
    // Uncharges an object that was not created after all.
    [[gnu::cold]] void give_back(const Receipt& receipt) noexcept;
    // After the real call of a creation failed: records what the device or its driver had no more of. Keeps errno, by which
    // it is told from a wrong argument.
    [[gnu::cold]] void report_failure(const Receipt& receipt);

    // Whether the guard in the kernel refuses with this errno, which a device may have too.
    [[gnu::cold]] bool is_refusal(int error) const noexcept;

    // The errno of a denial, where the policy says `error`. Programs try registrations of memory again for as long as they
    // get EAGAIN, so these get EDQUOT.
    static int denial_errno(int error, const Amounts& amounts) noexcept;

    // For an object that grows or shrinks, in the accounts that its receipt was charged to. The caller changes the
    // receipt.
    bool charge_more(const Receipt& receipt, const Amounts& amounts);
    void uncharge_part(const Receipt& receipt, const Amounts& amounts) noexcept;
    [[gnu::cold]] void give_back_part(const Receipt& receipt, const Amounts& amounts) noexcept;

    // For a QP at a port of the device, likewise.
    bool bind(const Receipt& receipt, unsigned port);
    void unbind(const Receipt& receipt, unsigned port) noexcept;
    // Whether QPs are counted at this port: from when policy or environment first name it.
    bool counts_port(unsigned port);

    // --- device attributes (clamp.cpp). A moment's view.
    bool clamps();                             // whether a policy clamps them and enforces limits
    std::uint64_t most(Resource resource);     // how many this process can come to hold; `unlimited` for no bound
    std::uint64_t largest(Resource resource);  // how much one more object can ask for

    // --- activity, in every account that counts
    void count_cq_event();
    void count_qp_change(unsigned state, bool failed);

    Receipts& receipts() noexcept { return receipts_; }

    // Serializes resize and port binding, since the receipt is out meanwhile. Never hold it while calling end_closed():
    // fork takes the locks in the other order.
    std::unique_lock<std::mutex> lock_resizing() noexcept {
        end_closed();
        return std::unique_lock(resizing_);
    }

    OpPointer real(Op op) const noexcept { return real_[static_cast<std::size_t>(op)]; }
    void set_real(Op op, OpPointer pointer) noexcept { real_[static_cast<std::size_t>(op)] = pointer; }

    std::optional<Receipt> handle_receipt;   // for the context itself
    std::atomic<unsigned> device_ports = 0;  // how many the device has; 0 until it is asked

private:
    struct BoundPort {
        DevicePort port;
        unsigned number;
        BoundPort* next;
    };

    // Whether a charge that finds no room first ends closed contexts; not while a lock is held that fork takes.
    enum class Retry : std::uint8_t { never, after_closed };
    template <Kind kind>
    bool charge_at_once(std::size_t i, std::uint64_t size) noexcept;
    template <Kind kind>
    void uncharge_as(AccountMask charged, std::uint64_t size) noexcept;
    std::optional<AccountMask> charge_after_all(Kind kind, std::uint64_t size, AccountMask charged);
    bool charge_accounts(DevicePort& port, AccountMask wanted, const Amounts& amounts, Retry retry);
    // What came of a charge that found no room at once. `again`: there may be more by now.
    enum class Outcome : std::uint8_t { admitted, denied, again };
    struct Attempt {
        std::uint64_t generation;         // of the limits, read before them
        std::uint64_t wait_until_ns = 0;  // for a larger share; 0 before it was asked for
        std::optional<Denial> denied;     // not reported yet
    };
    // What one rate, in one account, says of a call.
    struct RateWait {
        std::size_t account;
        unsigned bit;  // in LimitCache::held_rates
        std::uint64_t amount, wait_ns;
        Resource rate() const noexcept { return rate_table[bit / LimitCache::bounds].id; }
        std::size_t bound() const noexcept { return bit % LimitCache::bounds; }  // in the order of Limits
        Scope scope() const noexcept { return bound() < 2 ? Scope::process : Scope::tenant; }
        bool is_total() const noexcept { return bit % 2 != 0; }
    };
    // What was taken of each rate, by account and bit.
    using Taken = std::uint64_t[Accounts::capacity][rate_count * LimitCache::bounds];
    [[gnu::noinline]] bool reserves_at_once(Command command) noexcept;
    [[gnu::cold, gnu::noinline]] void take_back(Command command, const Taken& taken) noexcept;
    template <class Act>
    bool for_each_rate(std::size_t i, Command command, Act act);
    [[gnu::noinline]] bool wait_for_rates(Command command);
    bool reserve_rates(Command command, std::uint64_t now_ns, RateWait& slowest, RateWait& audited, Taken& taken, Attempt& attempt);
    [[gnu::cold, gnu::noinline]] void tell_of_audit(const RateWait& wait);
    [[gnu::cold, gnu::noinline]] void delay(const RateWait& wait, std::uint64_t now_ns);
    [[gnu::cold, gnu::noinline]] bool is_denied(const RateWait& wait, Command command, const Taken& taken, Attempt& attempt);
    Denial denial_of(const RateWait& wait) const noexcept;
    bool charge_account(std::size_t i, DevicePort& port, const Amounts& amounts, Retry retry, Attempt& attempt);
    Outcome charge_by_proof(std::size_t i, DevicePort& port, const Amounts& amounts, const Limits* limits, Denial first,
                            unsigned ended_before, Retry retry, Attempt& attempt);
    void apply_soft_limits(std::size_t i, DevicePort& port, const Amounts& amounts, Limits* limits);
    bool may_have_more(std::size_t i, DevicePort& port, const Denial& denial, Attempt& attempt);
    bool admit_by_audit(std::size_t i, DevicePort& port, const Amounts& amounts, const Denial& denial);
    void report_denial(std::size_t i, DevicePort& port, const Denial& denial, Mode mode, int error) noexcept;
    void uncharge_accounts(DevicePort& port, AccountMask charged, const Amounts& amounts) noexcept;
    void give_back_accounts(DevicePort& port, AccountMask charged, const Amounts& amounts) noexcept;
    template <class Act>
    void for_each_charged(DevicePort& port, AccountMask charged, Act act);
    DevicePort* find_port(unsigned number) noexcept;
    DevicePort* port(unsigned number) noexcept;  // enters it in the ledgers; null when there is no memory
    bool is_held_by_kernel() const noexcept;
    bool is_removed(ibv_context& verbs) const noexcept;
    void uncharge_all() noexcept;
    bool counts(std::size_t i);
    bool clamps(std::size_t i);
    std::uint64_t room(std::size_t i, Resource resource);

    inline static std::atomic<unsigned> ended = 0;  // contexts so far, each counted when it has been uncharged

    ProcessId process_;  // that opened it; a forked child has only a copy
    Accounts accounts_;
    DeviceReport report_;
    DevicePort device_;
    std::atomic<BoundPort*> ports_ = nullptr;  // those that a QP was bound to
    Receipts receipts_;
    std::mutex resizing_;
    FileWatch file_;
    ino_t device_node_ = 0;  // of the device's directory in sysfs, which another device's never has; 0: not known
    Context* next_closed_ = nullptr;
    OpPointer real_[op_count] = {};
};

// Whether account `i` had room by limits that held until the end. Nothing is charged when not.
template <Kind kind>
[[gnu::always_inline]] inline bool Context::charge_at_once(std::size_t i, std::uint64_t size) noexcept {
    const auto& limits = device_.limit_cache(i);
    LimitCache::View view;
    if (!limits.view(view) || !view.holds()) [[unlikely]]
        return false;
    auto& account = *accounts_.account[i];
    return with_parts<kind>(
        size, [&](auto... parts) __attribute__((always_inline)) {
            auto& ledger = account.ledger();
            const auto limits_of = [&](Resource resource) -> auto& { return limits.cell(resource); };
            if (!ledger.charge_parts(account.owner(), device_.index(i), limits_of, parts...)) [[unlikely]]
                return false;
            if (view.holds() && !ledger.lost()) [[likely]]
                return true;
            ledger.give_back_parts(account.owner(), device_.index(i), parts...);
            return false;
        });
}

// Nothing here has a destructor left to run when a thread ends in `charge_after_all` (provider/host/cancellation.hpp).
template <Kind kind>
[[gnu::always_inline]] inline std::optional<AccountMask> Context::charge(std::uint64_t size) {
    AccountMask charged = 0;
    bool all = !accounts_.denied, in_time = true;
    {
        const BusErrorsAllowed allowed;
        if constexpr (kind != Kind::nothing)
            if (all && device_.has_rates()) [[unlikely]]
                all = in_time = reserves_at_once(command_of(kind, size));
        for (std::size_t i = 0; i < accounts_.count && all; ++i) {
            if (!device_.usable(i)) [[unlikely]]
                continue;
            all = charge_at_once<kind>(i, size);
            if (all) [[likely]]
                charged = static_cast<AccountMask>(charged | 1U << i);
        }
    }
    if (all) [[likely]]
        return charged;
    if (!in_time && !wait_for_rates(command_of(kind, size))) return std::nullopt;
    return charge_after_all(kind, size, charged);
}

template <Kind kind>
[[gnu::always_inline]] inline void Context::uncharge_as(AccountMask charged, std::uint64_t size) noexcept {
    const BusErrorsAllowed allowed;
    with_parts<kind>(
        size, [&](auto... parts) __attribute__((always_inline)) {
            for (std::size_t i = 0; i < accounts_.count; ++i)
                if (charged & 1U << i)
                    accounts_.account[i]->ledger().uncharge_parts(accounts_.account[i]->owner(), device_.index(i),
                                                                  parts...);
        });
}

}  // namespace rdmaquota::provider
