// A process that holds an owner slot of a ledger, with something charged, until the test ends.
#pragma once

#include <csignal>

#include <catch2/catch.hpp>
#include <sys/wait.h>
#include <unistd.h>

#include "shm/ledger/ledger.hpp"

namespace rdmaquota {

class SlotChild {
public:
    // The slot says that its owner is `identity`.
    SlotChild(const std::string& ledger, const Identity& identity, const std::string& device, const Amounts& amounts) {
        int ready[2];
        REQUIRE(pipe(ready) == 0);
        pid_ = fork();
        if (pid_ == 0) hold(ledger, identity, device, amounts, ready[1]);
        close(ready[1]);
        char byte = 0;
        const auto got = read(ready[0], &byte, 1);
        close(ready[0]);
        REQUIRE(got == 1);
    }
    SlotChild(const SlotChild&) = delete;
    ~SlotChild() {
        if (pid_ < 1) return;
        kill(pid_, SIGKILL);
        waitpid(pid_, nullptr, 0);
    }

    std::uint32_t pid() const { return static_cast<std::uint32_t>(pid_); }

private:
    [[noreturn]] static void hold(const std::string& path, const Identity& identity, const std::string& device,
                                  const Amounts& amounts, int ready) {
        auto ledger = Ledger::open(path);
        if (!ledger) _exit(1);
        const auto owner = ledger->claim(identity);
        const auto number = ledger->device_index(device);
        const Limits none[Amounts::capacity];
        if (!owner || !number || ledger->charge(*owner, *number, amounts, none)) _exit(1);
        if (write(ready, "r", 1) != 1) _exit(1);
        for (;;) pause();
    }

    pid_t pid_ = -1;
};

}  // namespace rdmaquota
