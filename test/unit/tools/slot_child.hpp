// A process that holds an owner slot of a ledger, with something charged, until the test ends.
#pragma once

#include <stdexcept>

#include <unistd.h>

#include "shm/ledger/ledger.hpp"
#include "test/processes.hpp"

namespace rdmaquota {

class SlotChild {
public:
    // The slot says that its owner is `identity`.
    SlotChild(const std::string& ledger, const Identity& identity, const std::string& device, const Amounts& amounts)
        : ends_(make_pipe()), child_([&] { hold(ledger, identity, device, amounts); }) {
        close(ends_.second);
        char byte = 0;
        const bool ready = read(ends_.first, &byte, 1) == 1;
        close(ends_.first);
        if (!ready) throw std::runtime_error("the child could not charge");
    }

    std::uint32_t pid() const { return static_cast<std::uint32_t>(child_.pid()); }

private:
    static std::pair<int, int> make_pipe() {
        int ends[2];
        if (pipe(ends) != 0) throw std::system_error(errno, std::generic_category(), "pipe");
        return {ends[0], ends[1]};
    }
    void hold(const std::string& path, const Identity& identity, const std::string& device, const Amounts& amounts) {
        auto ledger = Ledger::open(path);
        if (!ledger) _exit(1);
        const auto owner = ledger->claim(identity);
        const auto number = ledger->device_index(device);
        const Limits none[Amounts::capacity];
        if (!owner || !number || ledger->charge(*owner, *number, amounts, none)) _exit(1);
        if (write(ends_.second, "r", 1) != 1) _exit(1);
        for (;;) pause();
    }

    std::pair<int, int> ends_;
    ChildProcess child_;
};

}  // namespace rdmaquota
