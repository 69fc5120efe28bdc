#include "tools/cluster/agent/agent.hpp"

#include <algorithm>
#include <utility>

namespace rdmaquota::cluster {
namespace {

using namespace std::chrono_literals;

constexpr Time look_interval = 1s;
constexpr Time shortest_wait = 200ms, longest_wait = 10s;  // between two attempts to connect

}  // namespace

Time Agent::next_tick() const noexcept { return connecting_ || heard_ ? next_look_ : next_attempt_; }

void Agent::tick() {
    const auto now = world_.clock.now();
    if (!connecting_ && !heard_ && now >= next_attempt_) {
        connecting_ = true;
        next_look_ = now + look_interval;
        world_.uplink.connect();
    }
    if (heard_ && now >= next_look_) look(false);
}

void Agent::received(const ToNode& word) {
    heard_ = true;
    connecting_ = false;
    attempts_ = 0;
    const bool is_new_stream = !word_ || word_->stream != word.stream;
    if (is_new_stream) said_.reset();
    word_ = word;
    taken_ = false;
    look(true);
}

// What the sidecar did not take is offered to it again.
void Agent::look(bool say_all) {
    next_look_ = world_.clock.now() + look_interval;
    auto report = world_.sidecar.take(taken_ ? nullptr : &word_->delivery);
    const auto problem = report ? std::string() : report.error();
    if (std::exchange(problem_, problem) != problem && !problem.empty()) world_.note(problem);
    if (!report) return;
    taken_ = true;
    if (!say_all && said_ == *report) return;
    said_ = *report;
    world_.uplink.send({word_->stream, std::move(*report)});
}

// Nodes that lose a coordinator all at once come back one after the other.
void Agent::disconnected(const std::string& why) {
    if (heard_ || attempts_ == 0) world_.note("no coordinator: " + why);
    connecting_ = heard_ = taken_ = false;
    word_.reset();
    said_.reset();
    const auto wait = std::min(longest_wait, shortest_wait * (1 << std::min(attempts_, 6U)));
    ++attempts_;
    next_attempt_ = world_.clock.now() + wait / 2 + wait / 2 * (world_.random() % 1024) / 1024;
}

}  // namespace rdmaquota::cluster
