// Three ways of keeping a tenant's accounting, so that one benchmark measures all of them alike: our
// ledger, the same counters behind a process-shared robust mutex, and a collector process behind a
// Unix socket.
#pragma once

#include <array>
#include <memory>
#include <string>
#include <string_view>

#include "shm/ledger/ledger.hpp"

namespace rdmaquota::bench {

// One process's access to the accounts; made in that process.
class Accounting {
public:
    virtual ~Accounting() = default;
    // True: charged. The amounts are one_resource() or one_qp(). `limits` has one entry per amount, all of them alike;
    // the rivals know process and tenant limits.
    virtual bool charge(const Amounts& amounts, const Limits* limits) = 0;
    virtual void uncharge(const Amounts& amounts) = 0;
};

// What the processes share; made before they are forked and destroyed after they have ended.
class Site {
public:
    virtual ~Site() = default;
    virtual std::unique_ptr<Accounting> join() = 0;
};

std::unique_ptr<Site> make_ledger_site();
std::unique_ptr<Site> make_mutex_site();
std::unique_ptr<Site> make_socket_site();

struct Side {
    const char* name;
    std::unique_ptr<Site> (*make)();
};
inline constexpr std::array<Side, 3> sides{{
    {"ours", make_ledger_site},
    {"mutex", make_mutex_site},
    {"socket", make_socket_site},
}};

// A ledger directory on a tmpfs, gone with this object.
class TemporaryLedger {
public:
    TemporaryLedger();
    ~TemporaryLedger();
    TemporaryLedger(const TemporaryLedger&) = delete;
    Ledger open() const;
    // A slot of its own for this process, or for one more of the owners it plays.
    static Owner claim(Ledger& ledger);

private:
    std::string directory_;
};

// Limits that are there and far away, as on a well-run node: each is compared, none denies.
inline std::array<Limits, Amounts::capacity> far_limits() {
    std::array<Limits, Amounts::capacity> limits;
    for (auto& limit : limits) limit.process = limit.tenant = std::uint64_t{1} << 40;
    return limits;
}

inline Amounts one_resource() { return Amounts{}.add(Resource::pd, 1); }

inline Amounts one_qp() {
    return Amounts{}
        .add(Resource::qp, 1)
        .add(Resource::hca_object, 1)
        .add(Resource::send_wr, 128)
        .add(Resource::recv_wr, 128);
}

}  // namespace rdmaquota::bench
