#include <cstdlib>
#include <filesystem>

#include <unistd.h>

#include "shm/ledger/steps.hpp"
#include "test/bench/accounting.hpp"
#include "test/bench/measure.hpp"

namespace rdmaquota::bench {
namespace {

template <class Use>
auto with_parts(const Amounts& amounts, const Use& use) {
    using enum Resource;
    if (amounts.count == 1) return use(Part<pd>{1});
    return use(Part<qp>{1}, Part<hca_object>{1}, Part<send_wr>{128}, Part<recv_wr>{128});
}

// As the provider has it, which knows at compile time what an object costs: what one_resource() and one_qp() say.
class LedgerBooks : public Accounting {
public:
    explicit LedgerBooks(Ledger ledger)
        : ledger_(std::move(ledger)),
          owner_(TemporaryLedger::claim(ledger_)),
          device_(ledger_.device_index("bench0").value()) {}
    ~LedgerBooks() override { ledger_.retire(owner_); }

    bool charge(const Amounts& amounts, const Limits* limits) override {
        const auto limits_of = [limits](Resource) -> const Limits& { return *limits; };
        return with_parts(amounts, [&](auto... parts) {
            return ledger_.charge_parts(owner_, device_, limits_of, parts...);
        });
    }
    void uncharge(const Amounts& amounts) override {
        with_parts(amounts, [&](auto... parts) { ledger_.uncharge_parts(owner_, device_, parts...); });
    }

private:
    Ledger ledger_;
    Owner owner_;
    std::uint32_t device_;
};

class LedgerSite : public Site {
public:
    std::unique_ptr<Accounting> join() override { return std::make_unique<LedgerBooks>(ledger_.open()); }

private:
    TemporaryLedger ledger_;
};

}  // namespace

TemporaryLedger::TemporaryLedger() {
    const char* base = std::getenv("RDMAQUOTA_BENCH_DIR");
    directory_ = std::string(base ? base : "/dev/shm") + "/rdmaquota-bench.XXXXXX";
    if (!mkdtemp(directory_.data())) give_up("cannot create " + directory_);
    if (const auto made = Ledger::create(directory_ + "/ledger", {}); !made) give_up(made.error());
}

TemporaryLedger::~TemporaryLedger() {
    std::error_code ignored;
    std::filesystem::remove_all(directory_, ignored);
}

Ledger TemporaryLedger::open() const {
    auto ledger = Ledger::open(directory_ + "/ledger");
    if (!ledger) give_up(ledger.error());
    return std::move(*ledger);
}

Owner TemporaryLedger::claim(Ledger& ledger) {
    auto owner = ledger.claim(identity_of_self());
    if (!owner) give_up(owner.error());
    return std::move(*owner);
}

std::unique_ptr<Site> make_ledger_site() { return std::make_unique<LedgerSite>(); }

}  // namespace rdmaquota::bench
