// Collecting the events of a BPF ring buffer.
#pragma once

#include <cerrno>
#include <cstddef>
#include <vector>

namespace rdmaquota {

// A callback for libbpf's ring buffers, whose context is a std::vector<Event>*. At `most` events the rest waits for the next call.
template <typename Event, std::size_t most>
int append_event(void* events, void* data, std::size_t) {
    auto& all = *static_cast<std::vector<Event>*>(events);
    all.push_back(*static_cast<const Event*>(data));
    return all.size() < most ? 0 : -EAGAIN;
}

}  // namespace rdmaquota
