// Storms: real processes that charge one ledger while they are killed, stopped and cut off, and the
// checks that hold after each.
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

// Forks; the child runs `body` and ends with status 0.
pid_t spawn(const std::function<void()>& body);
// Ends it for certain and says how it had ended: a signal number, 0 for a clean exit, -1 for another.
int reap_child(pid_t child);
// Like reap_child, but -2 when it has not ended by itself in time (it is then killed).
int await_child(pid_t child, double seconds);
// Until the child is stopped or gone; true when stopped.
bool await_stop(pid_t child);

// From now on this process sends itself `signal` at its nth step (1 is the next one). 0: never.
void aim(int signal, std::uint64_t nth);
std::uint64_t steps_taken();

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
