// hostile [SECONDS]: one process writes over a live ledger, in several ways, while others open,
// claim, charge, uncharge, reap and list. None may crash or stay in one call for ten seconds, and
// afterwards the ledger can be replaced. In the end it repeatedly cuts the file short and replaces it as
// `rdmaquota reload` does. Some users are killed now and then, so that there are dead to reap;
// one blocks SIGBUS. Prints the longest call of each kind.
#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <iterator>
#include <random>
#include <span>

#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "shm/ledger/ledger.hpp"
#include "shm/ledger/ledger_file.hpp"
#include "test/processes.hpp"
#include "test/unit/temporary_directory.hpp"

using namespace rdmaquota;

namespace {

constexpr std::uint64_t second_ns = 1'000'000'000;
constexpr std::uint64_t watchdog_ns = 10 * second_ns;
constexpr int users = 3;

enum class Call { idle, open, claim, charge, uncharge, reap, reconcile, events, listing, retire };
constexpr const char* call_names[] = {"idle", "open", "claim", "charge", "uncharge",
                                      "reap", "reconcile", "events", "listing", "retire"};
constexpr std::size_t calls = std::size(call_names);

std::uint64_t now_ns() {
    timespec time{};
    clock_gettime(CLOCK_MONOTONIC, &time);
    return static_cast<std::uint64_t>(time.tv_sec) * second_ns + static_cast<std::uint64_t>(time.tv_nsec);
}

// What a user is doing, for the watchdog; in memory that only this program shares.
struct Progress {
    std::atomic<std::uint64_t> since;
    std::atomic<Call> call;
    std::atomic<std::uint64_t> count[calls];
    std::atomic<std::uint64_t> longest_ns[calls];
    std::atomic<std::uint64_t> refused;  // attempts to open it that failed
};

class Timed {
public:
    Timed(Progress& progress, Call call) : progress_(progress), call_(call), start_(now_ns()) {
        progress_.since = start_;
        progress_.call = call;
    }
    ~Timed() {
        const auto i = static_cast<std::size_t>(call_);
        const auto took = now_ns() - start_;
        progress_.call = Call::idle;
        ++progress_.count[i];
        if (took > progress_.longest_ns[i]) progress_.longest_ns[i] = took;
    }
    Timed(const Timed&) = delete;

private:
    Progress& progress_;
    Call call_;
    std::uint64_t start_;
};

using Random = std::mt19937_64;

// Values at which some field changes its meaning.
std::uint64_t telling_word(Random& random) {
    static constexpr std::uint64_t words[] = {
        0, 1, 2, 63, 64, 65, 255, 256, 4095, 4096, 4097, 0xffff, 0x10000, UINT32_MAX, max_amount, max_amount + 1,
        INT64_MAX, UINT64_MAX - 1, UINT64_MAX};
    return words[random() % std::size(words)];
}

// The ways of writing. Each runs repeatedly for its share of the time.
using Way = void (*)(LedgerData&, Random&);

std::span<std::uint64_t> words_of(LedgerData& data) {
    return {reinterpret_cast<std::uint64_t*>(&data), sizeof data / sizeof(std::uint64_t)};
}

void write_word(std::uint64_t& word, std::uint64_t value) {
    std::atomic_ref(word).store(value, std::memory_order_relaxed);
}

std::size_t somewhere(Random& random) {
    static constexpr std::size_t edges[] = {
        0, offsetof(LedgerData, devices), offsetof(LedgerData, gates), offsetof(LedgerData, events),
        offsetof(LedgerData, states), offsetof(LedgerData, slots), offsetof(LedgerData, slots) + 4 * sizeof(Slot),
        offsetof(LedgerData, usage), offsetof(LedgerData, usage) + 4 * sizeof(CellRow)};
    const auto region = random() % (std::size(edges) - 1);
    return (edges[region] + random() % (edges[region + 1] - edges[region])) / sizeof(std::uint64_t);
}

void random_words(LedgerData& data, Random& random) { write_word(words_of(data)[somewhere(random)], random()); }

void telling_words(LedgerData& data, Random& random) {
    write_word(words_of(data)[somewhere(random)], telling_word(random));
}

// Everything at once: each of 4,096 slots taken and in use by nobody.
void all_live(LedgerData& data, Random& random) {
    for (auto& state : data.states)
        std::atomic_ref(reinterpret_cast<std::uint32_t&>(state)).store(1, std::memory_order_relaxed);
    write_word(data.header.slots_used, owner_slots);
    const auto slot = random() % owner_slots;
    for (auto& of_device : data.usage) std::fill(std::begin(of_device[slot]), std::end(of_device[slot]), random());
}

// The words of compare-and-swap loops, as fast as possible.
void contended_words(LedgerData& data, Random& random) {
    const auto r = index(Resource::qp);
    const auto value = random() & gate_amount_mask;
    for (std::uint64_t i = 0; i < 10'000; ++i) {
        write_word(data.gates[0][r], value + i);
        write_word(data.peaks[0][r], i & 1);
        for (int slot = 0; slot < users + 1; ++slot) write_word(data.usage[0][slot][r], value + i);
    }
}

// The words by which one process asks another to wait.
void cursors(LedgerData& data, Random& random) {
    auto& header = data.header;
    const auto first = static_cast<std::size_t>(&header.slots_used - words_of(data).data());
    for (auto i = first; i < (sizeof header - sizeof header.reserved) / sizeof(std::uint64_t); ++i)
        write_word(words_of(data)[i], random() % 2 ? telling_word(random) : random());
    for (int slot = 0; slot < users + 1; ++slot) write_word(data.slots[slot].ops, telling_word(random));
}

constexpr Way ways[] = {random_words, telling_words, all_live, contended_words, cursors};

// Without this, a broken header would keep everyone out for the rest of the run.
void mend_header(LedgerData& data, const LedgerHeader& whole) {
    std::memcpy(&data.header, &whole, offsetof(LedgerHeader, slots_used));
}

// Cuts the file short under its users, then replaces it.
void cut(const std::string& path, Random& random) {
    const auto bytes = random() % 4 ? random() % ledger_file_bytes : 0;
    if (truncate((path + "/ledger").c_str(), static_cast<off_t>(bytes)) != 0) _exit(3);
    usleep(random() % 5000);
    const auto aside = Ledger::replace_unusable(path, {});
    if (!aside || aside->empty()) _exit(4);
    std::filesystem::remove_all(*aside);
    usleep(random() % 5000);
}

[[noreturn]] void write_over(const std::string& path, std::uint64_t until, std::uint64_t seed) {
    const auto mapping = map_ledger_file(path + "/ledger");
    if (!mapping) _exit(2);
    auto& data = *ledger_data(*mapping);
    const LedgerHeader whole = data.header;
    Random random(seed);
    const auto start = now_ns();
    const auto share = (until - start) / (std::size(ways) + 1) + 1;
    for (std::uint64_t round = 0;; ++round) {
        const auto now = now_ns();
        if ((now - start) / share >= std::size(ways)) break;
        for (int i = 0; i < 100; ++i) {
            ways[(now - start) / share](data, random);
            if (round % 8 != 0) mend_header(data, whole);
            if (now_ns() >= until) break;
        }
        usleep(random() % 4 == 0 ? 200 : 0);
    }
    mend_header(data, whole);
    while (now_ns() < until) cut(path, random);
    _exit(0);
}

Amounts some_amounts(Random& random) {
    Amounts amounts;
    amounts.add(Resource::qp, 1 + random() % 4);
    if (random() % 2) amounts.add(resource_table[random() % resource_count].id, telling_word(random));
    return amounts;
}

Limits some_limits(Random& random) {
    Limits limits;
    if (random() % 2) limits.tenant = random() % 8;
    if (random() % 4 == 0) limits.process = random() % 8;
    if (random() % 4 == 0) limits.tenant_total = random() % 8;
    if (random() % 4 == 0) limits.process_total = random() % 8;
    return limits;
}

void list(const Ledger& ledger, Progress& progress, Random& random) {
    {
        const Timed timed(progress, Call::events);
        EventCursor cursor{random() % 2 ? 0 : telling_word(random), random() % 2 ? 0 : telling_word(random)};
        if (ledger.events(cursor).size() > event_slots + repair_slots) std::abort();
    }
    const Timed timed(progress, Call::listing);
    if (ledger.owners().size() > owner_slots || ledger.devices().size() > device_slots) std::abort();
    const auto r = resource_table[random() % resource_count].id;
    for (std::uint32_t device = 0; device < device_slots; ++device) ledger.tenant_usage(device, r);
}

void operate(Ledger& ledger, const Owner& owner, Progress& progress, Random& random) {
    const auto device = ledger.device_index("rxe0").value_or(0);
    const auto amounts = some_amounts(random);
    const Limits limits[] = {some_limits(random), some_limits(random)};
    bool charged = false;
    {
        const Timed timed(progress, Call::charge);
        charged = !ledger.charge(owner, device, amounts, limits);
    }
    if (charged || random() % 8 == 0) {
        const Timed timed(progress, Call::uncharge);
        ledger.uncharge(owner, device, amounts);
    }
    if (random() % 32 == 0) {
        const Timed timed(progress, Call::reap);
        ledger.reap();
    }
    if (random() % 32 == 0) {
        const Timed timed(progress, Call::reconcile);
        ledger.reconcile(static_cast<std::uint32_t>(random() % device_slots), amounts.resource[0]);
    }
    if (random() % 32 == 0) list(ledger, progress, random);
}

void use_once(const std::string& path, Progress& progress, Random& random) {
    auto ledger = [&] {
        const Timed timed(progress, Call::open);
        return Ledger::open(path);
    }();
    if (!ledger) {
        ++progress.refused;
        if (ledger.error().find('\n') != std::string::npos) std::abort();
        return;
    }
    auto owner = [&] {
        const Timed timed(progress, Call::claim);
        return ledger->claim(identity_of_self());
    }();
    if (!owner) return;
    for (int i = 0; i < 200; ++i) operate(*ledger, *owner, progress, random);
    const Timed timed(progress, Call::retire);
    if (random() % 4) ledger->retire(*owner);
}

void block_bus_errors() {
    sigset_t bus_error;
    sigemptyset(&bus_error);
    sigaddset(&bus_error, SIGBUS);
    sigprocmask(SIG_BLOCK, &bus_error, nullptr);
}

// Runs `body` in a child that ends with this program.
template <class Body>
pid_t start(const Body& body) {
    std::fflush(stdout);
    const pid_t child = fork_child();
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        body();
        _exit(0);
    }
    return child;
}

pid_t start_user(const std::string& path, Progress& progress, std::uint64_t until, std::uint64_t seed) {
    progress.call = Call::idle;
    return start([&] {
        Random random(seed);
        if (seed % users == 0) block_bus_errors();
        while (now_ns() < until) {
            const BusErrorsAllowed allowed;
            use_once(path, progress, random);
        }
    });
}

bool stuck(const Progress& progress) {
    const auto call = progress.call.load();
    const auto since = progress.since.load();
    const auto now = now_ns();
    if (call == Call::idle || now < since || now - since < watchdog_ns) return false;
    std::printf("# %s has taken more than %llu s\n", call_names[static_cast<std::size_t>(call)],
                static_cast<unsigned long long>(watchdog_ns / second_ns));
    return true;
}

// True when a user ended by itself or was killed by us.
bool ended_well(int status) {
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return true;
    if (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) return true;
    std::printf("# a user ended with %s %d\n", WIFSIGNALED(status) ? "signal" : "status",
                WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
    return false;
}

bool watch(const std::string& path, Progress* progress, std::uint64_t until, std::uint64_t seed) {
    pid_t pids[users];
    for (int i = 0; i < users; ++i) pids[i] = start_user(path, progress[i], until, ++seed);
    bool well = true;
    bool running = true;
    for (int round = 0; well && running; ++round) {
        usleep(50'000);
        const pid_t victim = pids[static_cast<std::size_t>(round / 10) % users];
        if (now_ns() < until && round % 10 == 9 && victim > 0) signal_process(victim, SIGKILL);
        running = false;
        for (int i = 0; i < users; ++i) {
            int status = 0;
            if (pids[i] > 0 && waitpid(pids[i], &status, WNOHANG) == pids[i]) {
                well = ended_well(status) && well;
                pids[i] = now_ns() < until ? start_user(path, progress[i], until, ++seed) : 0;
            }
            running = running || pids[i] > 0;
            well = well && !(pids[i] > 0 && stuck(progress[i]));
        }
    }
    for (const pid_t pid : pids)
        if (pid > 0) kill_child(pid);
    return well;
}

void print_longest(const Progress* progress) {
    std::printf("# call        times     longest\n");
    for (std::size_t i = 1; i < calls; ++i) {
        std::uint64_t count = 0;
        std::uint64_t longest = 0;
        for (int user = 0; user < users; ++user) {
            count += progress[user].count[i];
            longest = std::max<std::uint64_t>(longest, progress[user].longest_ns[i]);
        }
        std::printf("# %-9s %8llu %8.3f ms\n", call_names[i], static_cast<unsigned long long>(count),
                    static_cast<double>(longest) / 1e6);
    }
}

bool complain(const char* what) {
    std::printf("# the way back: %s\n", what);
    return false;
}

// A ledger whose header is broken is set aside, and the new one counts rightly.
bool way_back(const std::string& path) {
    {
        const auto mapping = map_ledger_file(path + "/ledger");
        if (mapping) write_word(ledger_data(*mapping)->header.magic, 0);
    }
    if (Ledger::open(path)) return complain("a broken header is taken for a good one");
    const auto aside = Ledger::replace_unusable(path, {});
    if (!aside || aside->empty()) return complain("the ledger was not replaced");
    auto ledger = Ledger::open(path);
    if (!ledger) return complain("the new ledger cannot be opened");
    const auto owner = ledger->claim(identity_of_self());
    if (!owner) return complain("the new ledger cannot be joined");
    const auto device = *ledger->device_index("rxe0");
    const auto one = Amounts{}.add(Resource::qp, 1);
    Limits limit;
    limit.tenant = 1;
    if (ledger->charge(*owner, device, one, &limit)) return complain("the new ledger denies the first unit");
    const auto denial = ledger->charge(*owner, device, one, &limit);
    return (denial && denial->proved) || complain("the new ledger admits too much");
}

}  // namespace

int main(int count, char** arguments) {
    const auto seconds = count > 1 ? std::strtoul(arguments[1], nullptr, 10) : 10;
    const auto seed = count > 2 ? std::strtoull(arguments[2], nullptr, 10) : now_ns();
    std::printf("# seed %llu\n", static_cast<unsigned long long>(seed));
    const TemporaryDirectory directory;
    const auto path = directory / "default";
    if (!Ledger::create(path, {})) return 2;
    void* memory = mmap(nullptr, users * sizeof(Progress), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) return 2;
    auto* progress = static_cast<Progress*>(memory);

    const auto until = now_ns() + seconds * second_ns;
    const pid_t writer = start([&] { write_over(path, until, seed); });
    bool well = watch(path, progress, until, seed);
    int status = 0;
    waitpid(writer, &status, 0);
    well = ended_well(status) && well;
    print_longest(progress);
    well = well && way_back(path);
    return well ? 0 : 1;
}
