// The rival that is written first by everyone: plain counters in shared memory and one robust mutex
// per tenant. It knows the same limits; it does not find out what a killed process held, nor keep
// peaks, which makes it faster than one that did.
#include <atomic>
#include <cerrno>
#include <new>

#include <pthread.h>
#include <sys/mman.h>

#include "test/bench/accounting.hpp"
#include "test/bench/measure.hpp"

namespace rdmaquota::bench {
namespace {

constexpr std::size_t most_processes = 128;

struct alignas(64) Counters {
    std::uint64_t amount[resource_slots] = {};
};

struct Shared {
    pthread_mutex_t mutex;
    std::atomic<std::size_t> joined{0};
    Counters tenant;
    Counters process[most_processes];
};

class Guard {
public:
    explicit Guard(pthread_mutex_t& mutex) : mutex_(mutex) {
        if (pthread_mutex_lock(&mutex_) == EOWNERDEAD) pthread_mutex_consistent(&mutex_);
    }
    ~Guard() { pthread_mutex_unlock(&mutex_); }
    Guard(const Guard&) = delete;

private:
    pthread_mutex_t& mutex_;
};

class MutexBooks : public Accounting {
public:
    explicit MutexBooks(Shared& shared) : shared_(shared), own_(shared.process[shared.joined++ % most_processes]) {}

    bool charge(const Amounts& amounts, const Limits* limits) override {
        const Guard guard(shared_.mutex);
        for (std::size_t i = 0; i < amounts.count; ++i) {
            const auto r = index(amounts.resource[i]);
            if (own_.amount[r] + amounts.amount[i] > limits[i].process) return false;
            if (shared_.tenant.amount[r] + amounts.amount[i] > limits[i].tenant) return false;
        }
        for (std::size_t i = 0; i < amounts.count; ++i) {
            own_.amount[index(amounts.resource[i])] += amounts.amount[i];
            shared_.tenant.amount[index(amounts.resource[i])] += amounts.amount[i];
        }
        return true;
    }

    void uncharge(const Amounts& amounts) override {
        const Guard guard(shared_.mutex);
        for (std::size_t i = 0; i < amounts.count; ++i) {
            own_.amount[index(amounts.resource[i])] -= amounts.amount[i];
            shared_.tenant.amount[index(amounts.resource[i])] -= amounts.amount[i];
        }
    }

private:
    Shared& shared_;
    Counters& own_;
};

class MutexSite : public Site {
public:
    MutexSite() {
        void* memory = mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        if (memory == MAP_FAILED) give_up("no shared memory for the mutex ledger");
        shared_ = new (memory) Shared;
        pthread_mutexattr_t attributes;
        pthread_mutexattr_init(&attributes);
        pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
        pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
        pthread_mutex_init(&shared_->mutex, &attributes);
        pthread_mutexattr_destroy(&attributes);
    }
    ~MutexSite() override { munmap(shared_, sizeof(Shared)); }
    MutexSite(const MutexSite&) = delete;

    std::unique_ptr<Accounting> join() override { return std::make_unique<MutexBooks>(*shared_); }

private:
    Shared* shared_;
};

}  // namespace

std::unique_ptr<Site> make_mutex_site() { return std::make_unique<MutexSite>(); }

}  // namespace rdmaquota::bench
