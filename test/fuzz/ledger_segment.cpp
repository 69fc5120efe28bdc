// A ledger file is overwritten before it is opened and while it is used: it is refused with one line, or every
// operation on it ends in bounded time.
//
// The input: a form byte, a length for truncation, then actions of one byte each with what they need.
#include <algorithm>
#include <filesystem>
#include <optional>
#include <vector>

#include "fuzz.hpp"
#include "patch.hpp"
#include "shm/ledger/ledger.hpp"
#include "shm/paths.hpp"
#include "shm/ledger/ledger_file.hpp"
#include "test/unit/temporary_directory.hpp"

using namespace rdmaquota;
using namespace rdmaquota::fuzz;

namespace {

struct Fixture {
    TemporaryDirectory directory;
    std::string path = directory / "default";
    PristineFile file = make();

private:
    PristineFile make() const {
        expect(static_cast<bool>(Ledger::create(path, {})), "a ledger can be created");
        auto ledger = Ledger::open(path);
        expect(ledger && ledger->device_index("rxe0"), "it can be opened");
        return PristineFile(data_path(path));
    }
};

struct Region {
    std::size_t begin;
    std::size_t end;
};

constexpr Region regions[] = {
    {0, offsetof(LedgerHeader, reserved)},
    {offsetof(LedgerHeader, slots_used), offsetof(LedgerHeader, reserved)},
    {offsetof(LedgerData, devices), offsetof(LedgerData, gates)},
    {offsetof(LedgerData, gates), offsetof(LedgerData, events)},
    {offsetof(LedgerData, events), offsetof(LedgerData, states)},  // and repairs
    {offsetof(LedgerData, states), offsetof(LedgerData, slots)},
    {offsetof(LedgerData, slots), offsetof(LedgerData, slots) + 4 * sizeof(Slot)},
    {0, sizeof(LedgerData)},
    {offsetof(LedgerData, usage), offsetof(LedgerData, usage) + 4 * sizeof(CellRow)},
};

struct Patch {
    std::size_t at;
    std::string bytes;
};

Patch take_patch(Input& input) {
    const auto& region = regions[input.take<std::uint8_t>() % std::size(regions)];
    const auto at = region.begin + input.take<std::uint32_t>() % (region.end - region.begin);
    const auto count = std::min<std::size_t>(input.take<std::uint8_t>(), region.end - at);
    // Many times the same, so that whole tables change: the largest counts take 4096 states.
    const auto times = std::min<std::size_t>(std::size_t{1} << input.take<std::uint8_t>() % 15, (region.end - at));
    std::string bytes;
    for (const auto one = input.text(count); !one.empty() && bytes.size() < times * count;) bytes += one;
    bytes.resize(std::min(bytes.size(), region.end - at));
    return {at, bytes};
}

// Someone who uses a ledger while its bytes change.
class User {
public:
    explicit User(Ledger ledger) : ledger_(std::move(ledger)) {}

    void act(Input& input) {
        constexpr std::size_t most_owners = 4;
        const auto action = input.take<std::uint8_t>();
        switch (action % 12) {
            case 0: return write(take_patch(input));
            case 1: return owners_.size() < most_owners ? claim() : retire();
            case 2: return charge(input);
            case 3: return uncharge(input);
            case 4: return retire();
            case 5: return void(ledger_.reap());
            case 6: return void(ledger_.reconcile(input.take<std::uint8_t>() % device_slots, resource(input)));
            case 7: return list(input.take<std::uint64_t>());
            case 8: return read(input);
            case 9: return record(input);
            case 10: return name_device(input);
            default: return drop();
        }
    }

private:
    static Resource resource(Input& input) { return resource_table[input.take<std::uint8_t>() % resource_count].id; }

    static Amounts amounts(Input& input) {
        Amounts result;
        const auto count = input.take<std::uint8_t>() % (Amounts::capacity + 1);
        for (std::size_t i = 0; i < count; ++i) result.add(resource(input), input.take<std::uint64_t>());
        return result;
    }

    void write(const Patch& patch) {
        std::memcpy(reinterpret_cast<char*>(&ledger_.data()) + patch.at, patch.bytes.data(), patch.bytes.size());
    }

    void claim() {
        auto owner = ledger_.claim(identity_of_self());
        if (!owner) return expect_one_line(owner.error());
        expect(owner->slot() < owner_slots, "a slot of the table");
        owners_.push_back(std::move(*owner));
    }

    void charge(Input& input) {
        if (owners_.empty()) claim();
        if (owners_.empty()) return;
        const auto asked = amounts(input);
        Limits limits[Amounts::capacity];
        for (auto& limit : limits) {
            const auto form = input.take<std::uint8_t>();
            if (form & 1) limit.tenant = form;
            if (form & 2) limit.process = form;
            if (form & 4) limit.tenant_total = form;
            if (form & 8) limit.process_total = form;
        }
        ledger_.charge(owners_.back(), device_, asked, limits);
    }

    void uncharge(Input& input) {
        if (!owners_.empty()) ledger_.uncharge(owners_.front(), device_, amounts(input));
    }

    void retire() {
        if (owners_.empty()) return;
        ledger_.retire(owners_.back());
        owners_.pop_back();
    }

    void drop() {
        if (!owners_.empty()) owners_.pop_back();
    }

    void list(std::uint64_t since) {
        EventCursor cursor{since, since};
        expect(ledger_.events(cursor).size() <= event_slots + repair_slots, "no more events than the rings hold");
        expect(ledger_.owners().size() <= owner_slots, "no more owners than slots");
        expect(ledger_.devices().size() <= device_slots, "no more devices than entries");
    }

    void read(Input& input) {
        const auto r = resource(input);
        const auto device = input.take<std::uint8_t>();
        const auto slot = input.take<std::uint16_t>();
        ledger_.usage(slot, device, r);
        ledger_.tenant_usage(device, r);
        ledger_.gate(device, r);
        ledger_.peak(device, r);
    }

    void record(Input& input) { ledger_.record(input.take<Event>()); }

    void name_device(Input& input) {
        const auto found = ledger_.device_index(input.line());
        if (found) device_ = *found;
        expect(device_ < device_slots, "a device of the table");
    }

    Ledger ledger_;
    std::vector<Owner> owners_;
    std::uint32_t device_ = 0;
};

// A ledger that cannot be used can be replaced.
void replace(const Fixture& fixture) {
    const auto aside = Ledger::replace_unusable(fixture.path, {});
    expect(aside && !aside.value().empty(), "an unusable ledger is replaced", aside ? "" : aside.error());
    expect(static_cast<bool>(Ledger::open(fixture.path)), "by one that can be used");
    std::filesystem::remove_all(aside.value());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    static const Fixture fixture;
    Input input(data, size);
    const auto form = input.take<std::uint8_t>();
    const auto length = input.take<std::uint32_t>();
    const int fd = fixture.file.restore();
    for (int i = 0; i < form % 8; ++i) {
        const auto patch = take_patch(input);
        PristineFile::write_at(fd, static_cast<off_t>(ledger_offset + patch.at), patch.bytes.data(),
                               patch.bytes.size());
    }
    if (form % 32 == 31) expect(ftruncate(fd, length % (2 * fixture.file.size())) == 0, "the file can be cut");
    close(fd);

    auto ledger = Ledger::open(fixture.path);
    if (!ledger) {
        expect_one_line(ledger.error());
        if (form & 64) replace(fixture);
        return 0;
    }
    User user(std::move(*ledger));
    for (int actions = 0; actions < 64 && !input.empty(); ++actions) user.act(input);
    return 0;
}
