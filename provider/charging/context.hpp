// One open device context: the real provider's ops, the accounts that its objects are charged to,
// and their receipts.
#pragma once

#include <atomic>
#include <cerrno>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include <infiniband/verbs.h>

#include "provider/charging/account.hpp"
#include "provider/host/file_watch.hpp"
#include "provider/abi/libibverbs.hpp"
#include "provider/charging/device_port.hpp"
#include "provider/charging/receipts.hpp"

namespace rdmaquota::provider {

class Context {
public:
    // Joins the process's accounts; throws only std::bad_alloc.
    Context(std::string device);
    ~Context();  // uncharges what the receipts say, unless this is a forked child's copy
    Context(const Context&) = delete;

    // From `adopt` until the context is closed. Lock-free.
    static Context* find(const ibv_context* context) noexcept;
    static void add(const ibv_context* context, Context* record);
    static Context* remove(const ibv_context* context) noexcept;

    // The receipt of an object that does not tell its context, taken out, and the context; both null when
    // none has one.
    static std::pair<Context*, std::unique_ptr<Receipt>> take_receipt(const void* object) noexcept;

    // A context is about to be closed, by closing `cmd_fd`, and has been. What the kernel then still has
    // of it stays charged: the record ends in `end_closed`, when its open file is gone.
    void watch_file(int cmd_fd) noexcept;
    static void end(std::unique_ptr<Context> context) noexcept;
    // Ends those closed contexts whose files are gone. True when there were any. Keeps errno.
    static bool end_closed() noexcept;

    // Around a fork: holds every lock of every context.
    static void lock_all() noexcept;
    static void unlock_all() noexcept;

    // Charges all accounts or none. On success a receipt to be filed or uncharged; on denial null,
    // with errno set to what the program shall see and the denial logged and recorded.
    std::unique_ptr<Receipt> charge(const Amounts& amounts) noexcept;
    void uncharge(const Receipt& receipt) noexcept;
    void uncharge(std::unique_ptr<Receipt> receipt) noexcept;  // uncharges, and keeps the receipt for the next object

    // For an object that grows or shrinks: charges or uncharges `amounts` in those accounts that its
    // receipt was charged to. The receipt's own amounts are the caller's to change.
    bool charge_more(const Receipt& receipt, const Amounts& amounts) noexcept;
    void uncharge_part(const Receipt& receipt, const Amounts& amounts) noexcept;

    // Charges and uncharges a QP at a port that the device has, in those accounts that its receipt was
    // charged to. The receipt's port is the caller's to change.
    bool bind(const Receipt& receipt, unsigned port) noexcept;
    // Whether QPs are counted at this port: since policy or environment first named it.
    bool counts_port(unsigned port) noexcept;
    void unbind(const Receipt& receipt, unsigned port) noexcept;

    // For device attributes, where the policy clamps them and enforces limits; `unlimited` where nothing
    // is to be clamped. A moment's view.
    bool clamps() noexcept;
    std::uint64_t most(Resource resource) noexcept;     // that this process can come to hold on the device
    std::uint64_t largest(Resource resource) noexcept;  // that one more object can ask for

    // Activity, for every account that counts.
    void count_cq_event() noexcept;
    void count_qp_change(unsigned state, bool failed) noexcept;

    Receipts& receipts() noexcept { return receipts_; }

    // Held by who resizes an object or binds a QP, since what it costs in the end depends on the order, and
    // its receipt is out meanwhile. Not to be held by who ends closed contexts: fork takes their locks first.
    std::unique_lock<std::mutex> lock_resizing() noexcept {
        end_closed();
        return std::unique_lock(resizing_);
    }

    OpPointer real(Op op) const noexcept { return real_[static_cast<std::size_t>(op)]; }
    void set_real(Op op, OpPointer pointer) noexcept { real_[static_cast<std::size_t>(op)] = pointer; }

    std::unique_ptr<Receipt> handle_receipt;  // for the context itself
    std::atomic<unsigned> ports = 0;          // of the device; 0 until they are asked for

private:
    struct Port {
        DevicePort place;
        unsigned number;
        Port* next;
    };

    // Whether a denial looks first for closed contexts that can be ended. Not under a lock that fork takes.
    enum class Retry : std::uint8_t { never, after_closed };
    bool charge_accounts(DevicePort& place, AccountMask wanted, const Amounts& amounts, Retry retry) noexcept;
    bool charge_account(std::size_t i, DevicePort& place, const Amounts& amounts, Retry retry) noexcept;
    bool admit_denied(std::size_t i, DevicePort& place, const Amounts& amounts, const Denial& denial, int error) noexcept;
    void uncharge_accounts(DevicePort& place, AccountMask charged, const Amounts& amounts) noexcept;
    DevicePort* known_port(unsigned number) noexcept;
    DevicePort* port(unsigned number) noexcept;
    std::string port_name(unsigned number) const;
    bool counts(std::size_t i) noexcept;
    bool clamps(std::size_t i) noexcept;
    std::uint64_t room(std::size_t i, Resource resource) noexcept;

    pid_t pid_;  // of the process that opened it; a forked child has only a copy
    Accounts accounts_;
    DevicePort device_;
    std::atomic<Port*> ports_ = nullptr;  // those that a QP was bound to
    Receipts receipts_;
    std::mutex resizing_;
    FileWatch file_;
    Context* next_closed_ = nullptr;
    OpPointer real_[op_count] = {};
};

}  // namespace rdmaquota::provider
