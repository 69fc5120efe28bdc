// Storms: real processes charge one ledger while they are killed, stopped and cut off; checks hold after each.
#pragma once

#include <csignal>
#include <cstdint>
#include <functional>
#include <string>

#include <sys/types.h>

#include "shm/ledger/ledger.hpp"
#include "shm/paths.hpp"

namespace storm {

using namespace rdmaquota;

// Prints "ok - NAME" or "not ok - NAME" with what was seen.
void check(bool good, const std::string& name, const std::string& seen = {});
int finish();  // prints the counts; the exit status

// A ledger directory of its own, removed at the end.
class Scene {
public:
    Scene();
    ~Scene();
    Scene(const Scene&) = delete;
    const std::string& path() const { return path_; }
    Ledger open() const;

private:
    std::string directory_;
    std::string path_;
};

// Forks; the child runs `body` and ends with status 0, or 1 after an exception. Throws when fork fails.
pid_t spawn(const std::function<void()>& body);
// Kills the child and returns how it ended: a signal number, 0 for a clean exit, -1 for another.
int reap_child(pid_t child);
// Waits for the child's own end and returns the same; after `seconds`, kills it and returns -2.
int await_child(pid_t child, double seconds);
// Waits until the child is stopped or gone; true when stopped.
bool await_stop(pid_t child);

// From now on this process sends itself `signal` at its nth failpoint (1 is the next one). 0: never.
void aim(int signal, std::uint64_t nth);

// True when every gate equals the sum of the slots and nobody but the living holds anything.
bool accounting_is_true(Ledger& ledger, std::string& seen);
// True when a newcomer can charge exactly `limit` of each resource that the storms use.
bool has_room(Ledger& ledger, std::uint64_t limit, std::string& seen);

Amounts two_resources(std::uint64_t n);
const Limits* limits_of(std::uint64_t limit);  // for two_resources

void aimed_storm();
void random_storm(double seconds, unsigned seed);
void surroundings_storm();

}  // namespace storm
