// Whether kernel and ledger say the same of each process, and what is done when they do not.
//
// The two are read one after the other while programs run, so a difference counts only when one side had more in
// several looks in a row than the other in any of them; and while anything of the process changes from look to look,
// than the other in the last seconds. Sooner known is who has no slot at all: the provider charges before it opens a
// device and gives back after it closed it, so that one which is open in two looks, and not closed between them, needs
// a slot in the first. Processes that use one another's device
// contexts (after a fork, or when a descriptor was passed on) are compared together: the ledger charges who the
// provider's account belongs to, the kernel who makes the system call.
//
//   kernel has more: a bypass. Reported; as the policy says also charged (the sidecar holds an owner slot in the
//                    ledger for as long), bounded by the kernel, or ended (sanctions.hpp).
//   ledger has more: a leak. What the dead left is given back by reaping and reconciling; a living process that
//                    was charged for more than it has is reported.
//
// One thread. Nothing here logs; what is to be told is returned.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "policy/bypass.hpp"
#include "shm/ledger.hpp"
#include "shm/policy_segment.hpp"
#include "tools/rdmaquotad/finding.hpp"
#include "tools/rdmaquotad/kernel_watch.hpp"
#include "tools/rdmaquotad/node.hpp"
#include "tools/rdmaquotad/process_names.hpp"
#include "tools/rdmaquotad/sanctions.hpp"

namespace rdmaquota {

// What is compared.
struct Sight {
    const KernelWatch& watch;
    const std::vector<KernelUse>& uses;  // read from `watch` just before
    Ledger& ledger;
    LedgerFile file;
    const PolicySegment& policy;
    // Programs charge this ledger by default. Otherwise those who have no slot in it are not its concern.
    bool everyone;
};

class Agreement {
public:
    // Call `look` this often: a bypass is told after three looks; and twice when a device is opened.
    static constexpr unsigned look_interval_ms = 200;

    explicit Agreement(Backstop& backstop) : sanctions_(backstop) {}

    std::vector<Finding> look(const Sight& sight, Bypass bypass);

    std::vector<Difference> bypasses() const;  // at present
    std::uint64_t corrected() const noexcept { return corrected_; }  // gates, so far

    // Gives back what is charged for others; for an orderly end.
    void end(Ledger& ledger);

private:
    using Place = std::pair<std::uint32_t, std::string>;  // process and device
    // What both sides had in each of the last looks. The two are not read at one instant, so that of a busy process
    // now this, now that one seems to have more: it is the least of one that counts, against the most of the other.
    class Looks {
    public:
        struct Amounts {
            std::uint64_t least_kernel, most_kernel, ledger;
        };
        void begin(bool same);  // whether all of it is as at the last look
        void set(Resource resource, const Amounts& amounts);
        void confirm();  // this look needs no others beside it
        std::uint64_t bypass(Resource resource) const;  // how much more the kernel had all the while
        std::uint64_t leak(Resource resource) const;    // and the ledger

    private:
        static constexpr std::size_t for_bypass = 3, for_leak = 6, lately = 16;
        struct Most {
            std::uint64_t kernel = 0, ledger = 0;
        };
        using Row = std::array<Amounts, resource_count>;
        std::uint64_t least(Resource resource, std::size_t looks, std::uint64_t Amounts::* side) const;

        std::array<Row, for_leak> looks_{};
        std::array<std::array<Most, resource_count>, 2> most_{};  // in up to `lately` looks, and in as many before
        std::size_t count_ = 0, same_ = 0;                        // looks; those that changed nothing, in a row
    };
    struct Watched {
        Looks looks;
        Difference difference;  // of the last look; without amounts
        ResourceCounts in_kernel{}, in_ledger{};
        std::uint64_t deeds = 0;  // objects made and destroyed, as far as seen
        std::uint64_t openings = 0;  // and closings, as far as seen
        bool partial = false, slotless = false;
        std::uint64_t told = 0;  // sum of the excess that was told; 0: nothing was
        bool leak_told = false;
        std::vector<Suspect> suspects;
        std::optional<Bypass> acted;  // what was asked for at the last look
        bool seen = false;
    };
    struct Charged {
        Owner owner;
        std::map<std::string, ResourceCounts> amounts;  // by device
    };
    struct Side;
    using Sides = std::map<Place, Side>;

    bool is_ours(std::uint32_t slot) const;
    Sides read(const Sight& sight);
    void add_ledger(Sides& sides, const std::map<std::uint32_t, std::uint32_t>& groups, const Ledger& ledger);
    void compare(const Place& place, const Side& side, const Sight& sight);
    Difference difference(const Watched& watched, bool bypass) const;
    void judge(Watched& watched, std::vector<Finding>& found);
    void act(const Place& place, Watched& watched, const Sight& sight, Bypass bypass, std::vector<Finding>& found);
    void charge(Ledger& ledger);
    void correct_gates(Ledger& ledger);

    Sanctions sanctions_;
    ProcessNames names_;
    std::map<Place, Watched> watched_;
    std::map<std::uint32_t, Charged> charged_;  // by process
    std::map<std::pair<std::uint32_t, Resource>, unsigned> loose_;  // gates that differed in looks in a row
    LedgerFile file_;
    std::uint64_t corrected_ = 0;
};

}  // namespace rdmaquota
